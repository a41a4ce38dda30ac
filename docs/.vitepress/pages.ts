/** The pages of the documentation site, in the order of its sidebar. A document that is not listed here is not on the site. */

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

const ROOT = join(import.meta.dirname, "../..");

type Section = {
  readonly title: string;
  /** The name in the bar at the top, which leads to the first page. */
  readonly nav?: string;
  readonly collapsed?: boolean;
  readonly files: readonly string[];
};

const operations = [
  "documents",
  "placement",
  "pressure",
  "limits",
  "rooms",
  "abuse",
  "events",
  "console",
  "metrics",
  "usage",
  "probes",
  "load-test",
  "traces",
  "webhooks",
  "leaderboard",
  "bridges",
  "backup",
  "partitions",
  "upgrade",
  "containers",
  "kubernetes",
];

const entryPoints = ["client", "client/broadcasts", "client/devtools", "client/indexeddb", "client/leaderboard", "client/store", "react"];

/** Pages that `docs/sdk-reference.js` writes from the types of the packages. They are not in the repository. */
export const GENERATED: readonly string[] = entryPoints.map((name) => `docs/sdk/@coroom/${name}.md`);

export const SECTIONS: readonly Section[] = [
  { title: "30 minutes", nav: "Start", files: ["README.md", "docs/guide/thirty-minutes.md"] },
  {
    title: "First day",
    nav: "Guides",
    files: [
      "docs/guide/first-day.md",
      "docs/guide/other-frameworks.md",
      "docs/guide/own-database.md",
      "docs/guide/language-models.md",
      "docs/leaving-y-websocket.md",
      "docs/leaving-hocuspocus.md",
      "examples/README.md",
    ],
  },
  {
    title: "First week",
    files: [
      "docs/guide/first-week.md",
      "docs/OPERATIONS.md",
      "docs/DURABILITY.md",
      "docs/PERFORMANCE.md",
      "docs/CAPACITY.md",
      "bench/README.md",
      "docs/THREAT-MODEL.md",
      "SECURITY.md",
    ],
  },
  { title: "Operations", nav: "Operations", collapsed: true, files: operations.map((name) => `docs/operations/${name}.md`) },
  {
    title: "Reference",
    nav: "Reference",
    files: [
      "client/README.md",
      "react/README.md",
      "docs/HTTP.md",
      "docs/SETTINGS.md",
      "docs/METRICS.md",
      "shared/wire/WIRE.md",
      "docs/GLOSSARY.md",
      "CHANGELOG.md",
    ],
  },
  { title: "SDK by types", collapsed: true, files: GENERATED },
  {
    title: "Inside Coroom",
    collapsed: true,
    files: ["ARCHITECTURE.md", "CONTRIBUTING.md", "test/sim/README.md", "docs/adr/README.md", ...decisions()],
  },
];

/** The address of each page on the site, by file. */
export const PAGES: Readonly<Record<string, string>> = Object.fromEntries(
  filesOf().map((file) => [file, file.replace(/^docs\//, "").replace(/(^|\/)README\.md$/, "$1index.md")]),
);

export function filesOf(): string[] {
  return SECTIONS.flatMap(({ files }) => files);
}

/** Pages that are documents of the repository. */
export function writtenFiles(): string[] {
  return filesOf().filter((file) => !GENERATED.includes(file));
}

/** Markdown files of the repository that are no pages. */
export function otherDocuments(folder = ""): string[] {
  return readdirSync(join(ROOT, folder), { withFileTypes: true })
    .filter(({ name }) => !name.startsWith(".") && !["node_modules", "dist"].includes(name))
    .flatMap((entry) => (entry.isDirectory() ? otherDocuments(join(folder, entry.name)) : [join(folder, entry.name)]))
    .filter((file) => file.endsWith(".md") && !(file in PAGES));
}

export function titleOf(file: string): string {
  const title = /^# (.+)$/m.exec(readFileSync(join(ROOT, file), "utf8"))?.[1];
  if (title === undefined) throw new Error(`${file} has no title: begin it with a line "# …"`);
  return title.replaceAll("`", "");
}

function decisions(): string[] {
  return readdirSync(join(ROOT, "docs/adr"))
    .filter((name) => /^\d.*\.md$/.test(name))
    .toSorted()
    .map((name) => `docs/adr/${name}`);
}
