// Builds each file of `src/` into one file of the page: `simplemem/web/static/vendor/NAME.js`, with
// NAME.css if it imports styles. `make web` runs this. The results are committed, so that nobody
// else needs Node.
import { build } from "esbuild";
import { readdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const target = join(here, "..", "simplemem", "web", "static", "vendor");
const sources = readdirSync(join(here, "src")).filter((name) => name.endsWith(".js"));

await build({
  entryPoints: sources.map((name) => join(here, "src", name)),
  outdir: target,
  bundle: true,
  minify: true,
  format: "iife",
  target: ["es2022"],
  legalComments: "linked", // the licences, in NAME.js.LEGAL.txt
  loader: { ".woff2": "file" },
  assetNames: "fonts/[name]",
  logLevel: "info",
});
