/** The reference of the packages is complete, and the site has its pages. `npm run build:docs` writes it by the same code. */

import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";

import { expect, onTestFinished, test } from "vitest";

import { GENERATED } from "./.vitepress/pages.ts";
import { entryPoints, writeSdkReference } from "./sdk-reference.js";

const SLOW_MS = 600_000;

/** In the repository, so that its packages are found. */
function newFolder(): string {
  mkdirSync(".coroom", { recursive: true });
  const folder = mkdtempSync(resolve(".coroom/sdk-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  return folder;
}

test("[SDKR1] the site has a page for every entry point of the packages", () => {
  expect(entryPoints().map(({ name }) => `docs/sdk/${name}.md`)).toEqual(GENERATED);
});

test(
  "[SDKR2] every exported name of the packages has a doc comment and is in the reference",
  async () => {
    const folder = newFolder();
    await writeSdkReference(entryPoints(), folder);
    const pages = entryPoints().map(({ name }) => readFileSync(join(folder, `${name}.md`), "utf8"));
    expect(pages.map((page) => page.split("\n")[0])).toEqual(entryPoints().map(({ name }) => `# ${name}`));
    for (const page of pages) expect(page).not.toMatch(/<a id|YjsProvider|__namedParameters/);
    const client = pages[0]!;
    expect(client).toContain("| `unsavedEdits` | `number` | Number of changes made here that are not acknowledged yet. |");
    expect(client).toContain('type SavingState = "saved" | "saving" | "refusing";');
    expect(client).toContain("- `read-only`: Edits were made in a room that this client may only read.");
  },
  SLOW_MS,
);

test(
  "[SDKR3] a name without a doc comment, a hidden name and a type that is not exported are found",
  async () => {
    const folder = newFolder();
    const source = join(folder, "planted.ts");
    const code = [
      "/**\n * An entry point.\n *\n * @module planted\n */",
      "type Kept = { readonly size: number };",
      "export type Bare = string;",
      "/** Documented. */\nexport type Good = { readonly bare: number };",
      "/** @internal */\nexport const HIDDEN = 1;",
      "/** Uses an inner type. */\nexport function keep(kept: Kept): void {\n  void kept;\n}",
    ];
    writeFileSync(source, code.join("\n\n"));
    const written = writeSdkReference([{ name: "planted", source }], join(folder, "pages"));
    const problem = await written.then(() => "", String);
    expect(problem).toMatch(/Bare \(TypeAlias\).* does not have any documentation/);
    expect(problem).toMatch(/Good\.bare \(Property\).* does not have any documentation/);
    expect(problem).toContain("HIDDEN, exported by planted, is not in the reference");
    expect(problem).toMatch(/Kept, .* is referenced by .*keep.* but not included/);
    expect(problem).not.toContain("keep (CallSignature)");
  },
  SLOW_MS,
);
