// Reads a pie chart of mermaid: `pie showData title Pets`, then a line `"Dogs" : 386` per section.
// Comments have been removed. It replaces the grammar of `@mermaid-js/parser`, which is much larger.

const HEADER = /^pie\b[ \t]*(showData\b)?[ \t]*/;
const TITLE = /^title(?:[ \t]+(.*))?$/;
const ACCESSIBLE_TITLE = /^accTitle[ \t]*:(.*)$/;
const ACCESSIBLE_DESCRIPTION = /^accDescr[ \t]*:(.*)$/;
const ACCESSIBLE_BLOCK = /accDescr\s*\{([^}]*)\}/;
const SECTION = /^(?:"([^"]*)"|'([^']*)')[ \t]*:[ \t]*(-?\d+(?:\.\d+)?)$/;

// Returns what mermaid's pie chart reads from the tree of its own parser.
export async function parse(kind, source) {
  if (kind !== "pie") throw new Error(`the parser of ${kind} diagrams is not built in`);

  const text = source.trim();
  const header = text.match(HEADER);
  if (header === null) throw new Error("a pie chart begins with `pie`");

  const chart = { showData: header[1] !== undefined, sections: [] };
  const readBlock = (_, description) => {
    chart.accDescr = description.trim();
    return "";
  };
  const lines = text.slice(header[0].length).replace(ACCESSIBLE_BLOCK, readBlock).split("\n");
  for (const line of lines) readLine(line.trim(), chart);
  return chart;
}

function readLine(line, chart) {
  if (line === "") return;
  const title = line.match(TITLE);
  const accessibleTitle = line.match(ACCESSIBLE_TITLE);
  const description = line.match(ACCESSIBLE_DESCRIPTION);
  const section = line.match(SECTION);
  if (title) chart.title = (title[1] ?? "").trim();
  else if (accessibleTitle) chart.accTitle = accessibleTitle[1].trim();
  else if (description) chart.accDescr = description[1].trim();
  else if (section) chart.sections.push({ label: (section[1] ?? section[2]).trim(), value: Number(section[3]) });
  else throw new Error(`this is no line of a pie chart: ${line}`);
}
