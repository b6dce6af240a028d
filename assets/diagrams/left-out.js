// Stands for the parts of mermaid that are not built into the page.
throw new Error("this kind of diagram is not drawn here");
