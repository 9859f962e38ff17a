// Writes the scripts that the app serves, and the licences of what is in them. They are committed, so that nobody needs
// Node to run the app.
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { build } from "esbuild";

const OUT = "../../pages/shared/plotly";

const { metafile } = await build({
  entryPoints: ["src/plotly.js", "src/many_points.js"],
  bundle: true,
  splitting: true,
  chunkNames: "common",
  minify: true,
  format: "esm",
  target: "es2022",
  charset: "utf8",
  legalComments: "none",
  define: { global: "globalThis" },
  loader: { ".css": "empty" }, // of maps of the earth
  outdir: OUT,
  banner: { js: "/* Plotly.js and what it needs: licences in LICENSES.txt. Built from frontend/plotly. */" },
  metafile: true,
});

const inside = Object.values(metafile.outputs).flatMap(({ inputs }) =>
  Object.entries(inputs).filter(([file, { bytesInOutput }]) => bytesInOutput > 0 && !file.endsWith(".css")).map(([file]) => file));
const packages = [...new Set(inside.map((file) => file.match(/^(.*node_modules\/(?:@[^/]+\/)?[^/]+)\//)?.[1]))]
  .filter(Boolean).sort();
writeFileSync("bundled.json", `${JSON.stringify(packages, null, 1)}\n`);
writeFileSync(`${OUT}/LICENSES.txt`, packages.map((folder) => {
  const { name, version, license } = JSON.parse(readFileSync(`${folder}/package.json`));
  const files = readdirSync(folder).filter((file) => /^(licen[cs]e|copying)/i.test(file)).sort();
  const texts = files.map((file) => readFileSync(`${folder}/${file}`, "utf8").replaceAll("\r\n", "\n").trim());
  return [`## ${name} ${version} (${license})`, ...texts].join("\n\n");
}).join("\n\n\n") + "\n");
