/** Checks the code as text. It covers rules of the layout and the documents that no compiler or linter checks. */

import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, normalize } from "node:path";
import { expect, test } from "vitest";

import { envName, type Settings } from "../shared/settings/settings.ts";

const TIERS = ["gateway", "room-server", "placement", "document-service", "leaderboard"];

/** The imports that each folder may have from this repository, by prefix. Only folders that assemble the others are not listed. */
const MAY_IMPORT: Readonly<Record<string, readonly string[]>> = {
  ...Object.fromEntries(TIERS.map((tier) => [tier, [`${tier}/`, "shared/"]])),
  shared: ["shared/"],
  engines: ["engines/", "shared/"],
  client: [
    "client/",
    "shared/wire/",
    "shared/yjs/",
    "shared/ids.ts",
    "shared/assert.ts",
    "shared/collections/prng.ts",
    "shared/collections/bytes.ts",
    "shared/collections/hash.ts",
  ],
  react: ["react/"],
  console: ["console/", "shared/display-text.ts"],
  bridges: ["bridges/", "client/", "shared/"],
  probe: ["probe/", "client/", "shared/"],
};

const NOT_OURS = new Set(["node_modules", "dist", ".git", ".coroom", "cache", ".temp"]);
const files = filesUnder(".");
const sources = files.filter((file) => file.endsWith(".ts") && !file.endsWith(".d.ts"));
const code = sources.filter((file) => !file.endsWith(".test.ts"));
const documents = files.filter((file) =>
  /^(?:README|ARCHITECTURE|CHANGELOG|CONTRIBUTING|SECURITY)\.md$|^docs\/.*\.md$|^[^/]+\/(?:.*\/)?(?:README|WIRE)\.md$/.test(file),
);

test("a tier imports nothing from another tier, and the client nothing from the servers", () => {
  const strayed = code
    .filter((file) => !file.includes("/testing/"))
    .flatMap((file) => {
      const allowed = MAY_IMPORT[folderOf(file)];
      if (allowed === undefined) return [];
      return importsOf(file)
        .filter((target) => !allowed.some((prefix) => target.startsWith(prefix)))
        .map((target) => `${file} imports ${target}`);
    });
  expect(strayed).toEqual([]);
});

/** The published class is the inner one, bound to the platform. */
const SHARED_NAMES = ["RoomConnection"];

test("a tier's deterministic file neither waits nor logs nor uses a clock, a timer or a socket", () => {
  const domain = code.filter(
    (file) => [...TIERS, "client", "bridges", "probe"].includes(folderOf(file)) && !/\/(?:io|testing)\/|-host\.ts$|\/main\.ts$/.test(file),
  );
  const using = (what: RegExp): string[] => domain.filter((file) => what.test(withoutComments(file)));
  expect(using(/\b(?:async|await)\b/)).toEqual([]);
  expect(using(/\/process\/log\.ts"/)).toEqual([]);
  expect(using(/\b(?:Date\.now|performance\.now|Math\.random|setTimeout|setInterval|setImmediate)\(|\bnew WebSocket\(/)).toEqual([]);
});

test("every exported class, interface or type has a unique name", () => {
  const filesOf = new Map<string, string[]>();
  for (const file of sources) {
    for (const [, name] of withoutComments(file).matchAll(/^export (?:abstract )?(?:class|interface|type) (\w+)/gm))
      filesOf.set(name!, [...(filesOf.get(name!) ?? []), file]);
  }
  const shared = [...filesOf].filter(([name, holders]) => new Set(holders).size > 1 && !SHARED_NAMES.includes(name));
  expect(shared.map(([name, holders]) => `${name}: ${holders.join(" ")}`)).toEqual([]);
});

/** `shared/bus/bus-version-guard.test.ts` reads them from their modules. */
const SCHEMAS_OF_STORES = ["EarlierTenant", "StoredEntry", "StoredLease"];

test("every exported name occurs in another file", () => {
  const filesOf = new Map<string, number>();
  for (const file of files.filter((each) => /\.(?:[jt]sx?|vue)$/.test(each))) {
    for (const word of new Set(withoutComments(file).match(/\w+/g))) filesOf.set(word, (filesOf.get(word) ?? 0) + 1);
  }
  const unused = sources.flatMap((file) =>
    [...withoutComments(file).matchAll(/^export (?:async )?(?:abstract )?(?:class|const|function|interface|type) (\w+)/gm)]
      .filter(([, name]) => filesOf.get(name!) === 1 && !SCHEMAS_OF_STORES.includes(name!))
      .map(([, name]) => `${file} exports ${name}`),
  );
  expect(unused).toEqual([]);
});

test("no file imports itself through other files, type imports included", () => {
  const circles = new Set<string>();
  const done = new Set<string>();
  const visit = (file: string, path: readonly string[]): void => {
    if (path.includes(file)) return void circles.add(path.slice(path.indexOf(file)).toSorted().join(" "));
    if (done.has(file)) return;
    for (const target of importsOf(file)) if (code.includes(target)) visit(target, [...path, file]);
    done.add(file);
  };
  for (const file of code) visit(file, []);
  expect([...circles]).toEqual([]);
});

test("every file of more than a few lines begins with a header", () => {
  const LINES_MIN = 12;
  expect(code.filter((file) => linesOf(file).length >= LINES_MIN && !/^(?:\/\*\*|#!)/.test(linesOf(file)[0]!))).toEqual([]);
});

test("each comment of a declaration stands directly before it, and a blank line follows the imports", () => {
  const misplaced = sources.filter((file) => {
    const text = textOf(file);
    const afterHeader = text.replace(/^(?:(?:#!|\/\/).*\n+)?\/\*\*[\s\S]*?\*\//, "").trimStart();
    return /\*\/\n(?:\n|\s*\/\*\*)/.test(afterHeader) || /^import .*";\n(?!import )[^\n]/m.test(text);
  });
  expect(misplaced).toEqual([]);
});

test("no file except tests has more than 350 lines", () => {
  const LINES_MAX = 350;
  expect(code.filter((file) => readFileSync(file, "utf8").split("\n").length - 1 > LINES_MAX)).toEqual([]);
});

test("an exception in a callback of a NATS subscription ends the process, in every tier", () => {
  const withCallbacks = code.filter((file) => [...TIERS, "shared"].includes(folderOf(file)) && /\bcallback: /.test(withoutComments(file)));
  expect(withCallbacks.length).toBeGreaterThan(5);
  expect(withCallbacks.filter((file) => /\bcallback: (?!crashing\()/.test(withoutComments(file)))).toEqual([]);
});

test("scripts are defined in Redis clients by one function, which handles clusters", () => {
  expect(code.filter((file) => /\bdefineCommand\(/.test(withoutComments(file)))).toEqual(["shared/io/redis.ts"]);
});

test("documents run coroom without npm's own output", () => {
  expect(documents.filter((file) => /npm run coroom/.test(textOf(file)))).toEqual([]);
});

test("no comment contains a task for later", () => {
  const LEFT = new RegExp(["TO" + "DO", "FIX" + "ME", "XX" + "X"].map((word) => `\\b${word}\\b`).join("|"));
  expect([...sources, ...documents].filter((file) => LEFT.test(textOf(file)))).toEqual([]);
});

test("a test id occurs in only one file, except ids of wire rules", () => {
  const rules = new Set([...textOf("shared/wire/WIRE.md").matchAll(/\*\*(WIRE\d+)\*\*/g)].map(([, rule]) => rule!));
  const filesOf = new Map<string, Set<string>>();
  for (const file of sources.filter((source) => source.endsWith(".test.ts"))) {
    for (const [, id] of textOf(file).matchAll(/["`]\[([A-Z]+\d+)\]/g)) filesOf.set(id!, (filesOf.get(id!) ?? new Set()).add(file));
  }
  const shared = [...filesOf].filter(([id, holders]) => holders.size > 1 && !rules.has(id));
  expect(shared.map(([id, holders]) => `${id} stands in ${[...holders].join(" and ")}`)).toEqual([]);
});

test("no two tests of a file have the same name, and no two decision records the same number", () => {
  const titles = sources
    .filter((source) => source.endsWith(".test.ts"))
    .flatMap((file) => twice([...textOf(file).matchAll(/^ *test\((".*?[^\\]"),/gm)].map(([, title]) => `${file}: ${title}`)));
  const numbers = readdirSync("docs/adr").map((name) => name.slice(0, 4));
  expect([...titles, ...twice(numbers)]).toEqual([]);
});

test("every file that a document names exists", () => {
  const missing = documents.flatMap((document) =>
    pathsIn(textOf(document))
      .filter((path) => !existsSync(path) && !existsSync(join(dirname(document), path)) && !isFolderOfEachTier(path))
      .map((path) => `${document} names ${path}`),
  );
  expect(missing).toEqual([]);
});

test("every file of code that a comment names exists", () => {
  const named = (file: string): string[] =>
    [...textOf(file).matchAll(/\/\*[\s\S]*?\*\/|(?<!:)\/\/.*/g)].flatMap(([comment]) =>
      [...comment.replace(/https?:\S+/g, "").matchAll(/(?<![\w./-])[\w][\w./-]*\.(?:ts|lua)\b/g)].map(([path]) => path),
    );
  const missing = sources.flatMap((file) =>
    named(file)
      .filter((path) => !path.endsWith(".d.ts") && !files.some((other) => `/${other}`.endsWith(`/${path}`)))
      .map((path) => `${file} names ${path}`),
  );
  expect(missing).toEqual([]);
});

test("every test that the threat model names exists", () => {
  const tests = sources
    .filter((file) => file.endsWith(".test.ts"))
    .map((file) => readFileSync(file, "utf8"))
    .join("\n");
  const named = [...readFileSync("docs/THREAT-MODEL.md", "utf8").matchAll(/\[[A-Z]+\d+\]/g)].map(([id]) => id);
  expect(named.length).toBeGreaterThan(0);
  expect(named.filter((id) => !tests.includes(`"${id} `))).toEqual([]);
});

test("every setting that a document names is declared", async () => {
  const declared = (await declaredSettings()).map(envName);
  const unknown = documents.flatMap((document) =>
    [...textOf(document).matchAll(/\bCOROOM_[A-Z0-9_]*[A-Z0-9]/g)]
      .map(([name]) => name)
      .filter((name) => !declared.includes(name))
      .map((name) => `${document} names ${name}`),
  );
  expect(unknown).toEqual([]);
});

function twice(texts: readonly string[]): string[] {
  return texts.filter((text, index) => texts.indexOf(text) < index);
}

function filesUnder(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true })
    .filter((entry) => !NOT_OURS.has(entry.name))
    .flatMap((entry) => (entry.isDirectory() ? filesUnder(join(folder, entry.name)) : [normalize(join(folder, entry.name))]));
}

/** Such as `io/`. */
function isFolderOfEachTier(path: string): boolean {
  return path.endsWith("/") && files.some((file) => file.includes(`/${path}`));
}

function folderOf(file: string): string {
  return file.split("/")[0]!;
}

function textOf(file: string): string {
  return readFileSync(file, "utf8");
}

function linesOf(file: string): string[] {
  return textOf(file).trimEnd().split("\n");
}

function withoutComments(file: string): string {
  return textOf(file)
    .replace(/\/\*[\s\S]*?\*\//g, "")
    .replace(/\/\/.*$/gm, "");
}

/** Relative imports, as paths from the root. */
function importsOf(file: string): string[] {
  return [...withoutComments(file).matchAll(/(?:\bfrom|\bimport)\s*\(?\s*"(\.[^"]+)"/g)].map(([, target]) =>
    normalize(join(dirname(file), target!)),
  );
}

/** Paths with a folder in backticks, and targets of relative links. Built files and web addresses are not paths. */
function pathsIn(markdown: string): string[] {
  const quoted = [...markdown.matchAll(/`((?:[\w.-]+\/)+(?:[\w.-]+\.[a-z]+)?)`/g)].map(([, path]) => path!);
  const linked = [...markdown.matchAll(/\]\((?!https?:|#|mailto:)([^)#\s]+)/g)].map(([, path]) => path!);
  return [...quoted, ...linked].filter((path) => !/(?:^|\/)(?:dist|node_modules|\.coroom)\//.test(path));
}

async function declaredSettings(): Promise<string[]> {
  const declarers = code.filter((file) => /^export const \w*[sS]ettings = \{/m.test(textOf(file)));
  const modules = await Promise.all(declarers.map(async (file) => (await import(join(process.cwd(), file))) as Record<string, Settings>));
  return modules.flatMap((module) =>
    Object.entries(module).flatMap(([name, settings]) =>
      /[sS]ettings$/.test(name) && typeof settings === "object" ? Object.keys(settings) : [],
    ),
  );
}
