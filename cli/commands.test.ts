/** Compares the table of commands with documents, examples and processes. */

import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";

import { expect, test } from "vitest";

import { readSettings } from "../shared/settings/settings.ts";
import { commands } from "./commands.ts";
import { refuseBareFlags, refuseUnknownFlags, parseCommandLine, subjectOf } from "./run.ts";

const parse = (words: readonly string[]) => parseCommandLine(words, ["ops"]);

test.each(commands.map((command) => [command.name, command] as const))(
  "[CMD1] coroom %s has examples that it could run",
  (name, command) => {
    expect(command.examples.length).toBeGreaterThan(0);
    for (const example of command.examples) {
      const { command: named, words, flags: flagged, bare } = parse(example.split(" ").slice(1));
      expect(named).toBe(name);
      const flags = { ...flagged, ...subjectOf(words, flagged, command) };
      refuseUnknownFlags(flags, command);
      refuseBareFlags(bare, command);
      readSettings(command.settings, { flags, env: {} });
    }
  },
);

const operations = ["docs/OPERATIONS.md", ...readdirSync("docs/operations").map((page) => `docs/operations/${page}`)];
const guides = ["client/README.md", "react/README.md", "docs/leaving-y-websocket.md", "docs/leaving-hocuspocus.md"].concat(
  readdirSync("docs/guide").map((page) => `docs/guide/${page}`),
);

test.each([
  ["README.md", ["README.md"]],
  ["docs/OPERATIONS.md with its pages", operations],
  ["the guides", guides],
] as const)("[CMD2] %s shows only commands and flags that exist", (document, files) => {
  const shown = [
    ...files
      .map((file) => readFileSync(file, "utf8"))
      .join("\n")
      .matchAll(/(?:`|^ *(?:COROOM_\S+ )*)(?:npx )?coroom (?!ready )((?:ops )?[a-z][a-z-]*)([^`\n#]*)/gm),
  ];
  expect(shown.length).toBeGreaterThan(4);
  for (const [, name, rest] of shown) {
    if (name === "ops") continue; // A group of commands.
    const command = commands.find((known) => known.name === name);
    expect(command, `coroom ${name} in ${document}`).toBeDefined();
    const flags = Object.fromEntries(
      [...rest!.matchAll(/--([a-z][a-z-]*)/g)].map(([, flag]) => [
        flag!.replace(/-([a-z])/g, (_, letter: string) => letter.toUpperCase()),
        "",
      ]),
    );
    if (!("help" in flags)) refuseUnknownFlags(flags, command!);
  }
});

test("[CMD3] the code of a command is loaded when the command runs", () => {
  const loaded = new Set<string>();
  const load = (file: string): void => {
    if (loaded.has(file) || !existsSync(file)) return;
    loaded.add(file);
    const imports = readFileSync(file, "utf8").matchAll(/^(?:import|export) (?!type )[^;]*? from "(\.[^"]+)";/gm);
    for (const [, path] of imports) load(join(dirname(file), path!));
  };
  load("cli/command-line.ts");
  expect(loaded).toContain("gateway/config.ts");
  expect(
    [...loaded].filter((file) =>
      /\/io\/|-host\.ts$|^(?!cli\/).*\/main\.ts$|^cli\/(?:start|ops|ops-placement|ops-left-out|ops-step-down|restore|split-log\/split-log|admin|ask-gateway|token|demo|secrets|users)\.ts$/.test(
        file,
      ),
    ),
  ).toEqual([]);
});
