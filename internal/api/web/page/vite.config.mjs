// Builds the page into ../dist under fixed names, so that a commit shows what changed, and writes
// beside it from which sources: the Go test compares them without node.
import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { defineConfig } from "vite";

const root = import.meta.dirname;
const apart = ["node_modules"];

/** The files that the page is built from, by name. */
function sources(folder = "") {
  return readdirSync(join(root, folder), { withFileTypes: true })
    .filter((f) => !apart.includes(f.name) && !f.name.startsWith("."))
    .flatMap((f) => {
      const name = folder ? `${folder}/${f.name}` : f.name;
      return f.isDirectory() ? sources(name) : [name];
    })
    .sort();
}

/** One line for each source, as sha256sum writes it. */
function digests() {
  return sources()
    .map(
      (name) =>
        `${createHash("sha256")
          .update(readFileSync(join(root, name)))
          .digest("hex")}  ${name}\n`,
    )
    .join("");
}

/** The licence of what is in the bundle goes where internal/dist looks for it. */
function licence(name) {
  const folder = join(root, "node_modules", name);
  const { version } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  return {
    fileName: `licences/${name}@${version}/LICENSE`,
    source: readFileSync(join(folder, "LICENSE"), "utf8"),
  };
}

const beside = {
  name: "beside",
  generateBundle() {
    this.emitFile({ type: "asset", fileName: "sources.sha256", source: digests() });
    this.emitFile({ type: "asset", ...licence("preact") });
  },
};

export default defineConfig({
  root,
  plugins: [beside],
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  build: {
    outDir: process.env.PAGE_OUT ?? "../dist",
    emptyOutDir: true,
    target: "es2022",
    modulePreload: { polyfill: false },
    rolldownOptions: {
      output: {
        entryFileNames: "assets/page.js",
        chunkFileNames: "assets/[name].js",
        assetFileNames: "assets/page[extname]",
      },
    },
  },
});
