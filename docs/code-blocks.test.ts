/** The TypeScript in the documents compiles: each block is a file of its own, beside the declarations in code-blocks.d.ts. */

import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";

import { expect, test } from "vitest";

import { writtenFiles } from "./.vitepress/pages.ts";

/** In the repository, so that the blocks find its packages. */
const FOLDER = "docs/.vitepress/cache/code-blocks";

type Block = { readonly name: string; readonly code: string };

const blocks = writtenFiles().flatMap((page) => blocksOf(page, readFileSync(page, "utf8")));

test("[SITE1] every block of TypeScript on the documentation site compiles", () => {
  expect(blocks.length).toBeGreaterThanOrEqual(20);
  expect(errorsIn(blocks)).toBe("");
});

test("[SITE2] a block that names what does not exist is found", () => {
  expect(
    errorsIn([{ name: "planted", code: 'import { CoroomProvider } from "@coroom/client";\nnew CoroomProvider({ rooms: 1 });' }]),
  ).toContain("planted.tsx(2");
});

test("[SITE3] every script that a document runs with npm exists", () => {
  const { scripts } = JSON.parse(readFileSync("package.json", "utf8")) as { scripts: Readonly<Record<string, string>> };
  const named = writtenFiles().flatMap((page) =>
    [...readFileSync(page, "utf8").matchAll(/\bnpm run (?:-s |--silent )?([a-z][\w:-]*)/g)].map(([, script]) => ({
      page,
      script: script!,
    })),
  );
  expect(named.length).toBeGreaterThan(40);
  expect(named.filter(({ script }) => script !== "dev" && !(script in scripts))).toEqual([]);
});

function blocksOf(page: string, text: string): Block[] {
  return [...text.matchAll(/^( *)```tsx?\n(.*?)^ *```$/gms)].map(([, indent, code], index) => ({
    name: `${page.replaceAll(/\W/g, "-")}-${index + 1}`,
    code: code!.replaceAll(new RegExp(`^${indent}`, "gm"), ""),
  }));
}

/** Returns what the compiler prints. */
function errorsIn(compiled: readonly Block[]): string {
  rmSync(FOLDER, { recursive: true, force: true });
  mkdirSync(FOLDER, { recursive: true });
  for (const { name, code } of compiled) writeFileSync(join(FOLDER, `${name}.tsx`), `${code}\nexport {};\n`);
  const { compilerOptions } = JSON.parse(readFileSync("tsconfig.json", "utf8")) as { compilerOptions: { paths: Record<string, string[]> } };
  const paths = { ...compilerOptions.paths, "@coroom/react": ["./react/index.ts"] };
  const config = {
    extends: resolve("tsconfig.json"),
    compilerOptions: {
      paths: Object.fromEntries(Object.entries(paths).map(([name, files]) => [name, files.map((file) => resolve(file))])),
      jsx: "react-jsx",
      module: "esnext",
      moduleResolution: "bundler",
      noUnusedLocals: false,
      noUnusedParameters: false,
    },
    include: ["*.tsx", resolve("docs/code-blocks.d.ts")],
    exclude: [],
  };
  writeFileSync(join(FOLDER, "tsconfig.json"), JSON.stringify(config));
  try {
    execFileSync(resolve("node_modules/.bin/tsc"), ["-p", FOLDER], { encoding: "utf8", stdio: "pipe" });
    return "";
  } catch (error) {
    return (error as { stdout: string }).stdout;
  }
}
