// Writes the bundle that the app serves; it is committed, so that nobody needs Node to run the app.
import { build } from "esbuild";

const note = "/* Built from frontend/map: npm ci && npm run build. */";
await build({
  entryPoints: { map: "src/index.js", map_feed: "src/feed.js" },
  bundle: true,
  minify: true,
  format: "esm",
  target: "es2020",
  charset: "utf8",
  legalComments: "none",
  outdir: "../../pages/shared/components",
  // Streamlit takes a text of one line for a file's name: the banner makes it two.
  banner: { js: note, css: note },
});
