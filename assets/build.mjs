// Builds each file of `src/` into one file of the page: `simplemem/web/static/vendor/NAME.js`, with
// NAME.css if it imports styles; and each file of `test/` into a file of the tests in a browser.
// `make web` runs this. The results are committed, so that nobody else needs Node.
import { build } from "esbuild";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

import { chooseDiagrams } from "./diagrams/selection.mjs";

const here = dirname(fileURLToPath(import.meta.url));
const root = join(here, "..");

async function buildAll(folder, target) {
  const names = readdirSync(join(here, folder)).filter((name) => name.endsWith(".js"));
  const { metafile } = await build({
    entryPoints: names.map((name) => join(here, folder, name)),
    outdir: join(root, target),
    bundle: true,
    minify: true,
    format: "iife",
    target: ["es2022"],
    legalComments: "linked", // the licences, in NAME.js.LEGAL.txt
    loader: { ".woff2": "file" },
    assetNames: "fonts/[name]",
    plugins: [chooseDiagrams],
    metafile: true,
    logLevel: "info",
  });
  return metafile;
}

// Writes the licences of all packages in a file of the page to NAME.js.LICENSES.txt. Most have no
// comment that esbuild would keep.
function writeLicences({ outputs }) {
  for (const [output, { inputs }] of Object.entries(outputs)) {
    const names = Object.entries(inputs)
      .filter(([, { bytesInOutput }]) => bytesInOutput > 0)
      .map(([path]) => path.match(/.*node_modules\/((?:@[^/]+\/)?[^/]+)/)?.[1])
      .filter((name) => name !== undefined);
    const licences = [...new Set(names)].sort().map(licenceOf);
    if (licences.length > 0) writeFileSync(`${output}.LICENSES.txt`, licences.join("\n\n"));
  }
}

function licenceOf(name) {
  const folder = join(here, "node_modules", name);
  const { version, license, author } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  const file = readdirSync(folder).find((entry) => /^licen[cs]e/i.test(entry));
  const by = typeof author === "object" ? author.name : author;
  const text = file ? readFileSync(join(folder, file), "utf8").trim() : `${license}, by ${by}`;
  return `=== ${name} ${version}\n\n${text}\n`;
}

writeLicences(await buildAll("src", "simplemem/web/static/vendor"));
await buildAll("test", "tests/web/browser/vendor");
