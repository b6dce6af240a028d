// What the frame of a diagram needs of mermaid. `diagrams/selection.mjs` says which parts are built.
import mermaid from "mermaid";

window.mermaid = mermaid;
