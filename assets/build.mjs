// Builds each file of `src/` into one file of the page: `simplemem/web/static/vendor/NAME.js`, with
// NAME.css if it imports styles; and each file of `test/` into a file of the tests in a browser.
// `make web` runs this. The results are committed, so that nobody else needs Node.
import { build } from "esbuild";
import { readdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const root = join(here, "..");

async function buildAll(folder, target) {
  const names = readdirSync(join(here, folder)).filter((name) => name.endsWith(".js"));
  await build({
    entryPoints: names.map((name) => join(here, folder, name)),
    outdir: join(root, target),
    bundle: true,
    minify: true,
    format: "iife",
    target: ["es2022"],
    legalComments: "linked", // the licences, in NAME.js.LEGAL.txt
    loader: { ".woff2": "file" },
    assetNames: "fonts/[name]",
    logLevel: "info",
  });
}

await buildAll("src", "simplemem/web/static/vendor");
await buildAll("test", "tests/web/browser/vendor");
