// Chooses what of mermaid is built into the page. All kinds of diagrams and layouts together are
// 5.1 MB. Those that are kept are about a quarter of it; a block of another kind shows its source.
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const LEFT_OUT = join(here, "left-out.js");
const PIE_PARSER = join(here, "pie-parser.js");

const KINDS = [
  "flowDiagram",
  "sequenceDiagram",
  "classDiagram-v2",
  "stateDiagram-v2",
  "erDiagram",
  "ganttDiagram",
  "pieDiagram",
  "mindmap-definition",
  "timeline-definition",
  "journeyDiagram",
  "quadrantDiagram",
  "xychartDiagram",
  "kanban-definition",
];
const DIAGRAM = /^(.*[dD]iagram(?:-v2)?|\w+-definition)-[A-Z0-9]{8}\.mjs$/;
// The frame sets the layout `dagre` for all diagrams. The others need elkjs and cytoscape, 2 MB.
const LAYOUT = /^(elk|swimlanes|cose-bilkent)-[A-Z0-9]{8}\.mjs$/;

export const chooseDiagrams = {
  name: "choose-diagrams",
  setup({ onResolve }) {
    onResolve({ filter: /^katex$/ }, () => ({ path: LEFT_OUT }));
    // The parser of the package is a framework of 0.7 MB, of which only pie charts would be left.
    onResolve({ filter: /^@mermaid-js\/parser$/ }, () => ({ path: PIE_PARSER }));

    onResolve({ filter: /\.mjs$/ }, ({ path, kind }) => {
      if (kind !== "dynamic-import") return undefined;
      const name = basename(path);
      const diagram = name.match(DIAGRAM)?.[1];
      const isOtherDiagram = diagram !== undefined && !KINDS.includes(diagram);
      return isOtherDiagram || LAYOUT.test(name) ? { path: LEFT_OUT } : undefined;
    });
  },
};
