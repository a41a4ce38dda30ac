/**
 * Checks that texts for operators and developers use the terms of docs/GLOSSARY.md. The words below are imprecise:
 * replace each by the term beside it.
 */

import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";

import { readableSettings } from "../shared/settings/settings.ts";
import { commands } from "../cli/commands.ts";
import { allMetrics } from "../deploy/all-metrics.ts";

const REPLACED: readonly (readonly [word: RegExp, term: string])[] = [
  [/\b(tells?|told|says?|said|hears?|heard)\b/i, "send, announce, publish, report, receive"],
  [/\blines?\b/i, "connection"],
  [/\b(news|tidings)\b/i, "delta, update, announcement"],
  [/\bthe whole\b(?! [a-z]+)/i, "snapshot"],
  [/\b(doors?|lobby|knocks?)\b/i, "admission queue, pending connection"],
  [/\b(standing|stands)\b/i, "status, score, position"],
  [/\bpaces?\b/i, "rate, interval"],
  [/\bdeeds?\b/i, "operation, action"],
  [/\b(troubles?|mends?|mended)\b/i, "error, failure; fix, repair"],
  [/\bcrowds?\b/i, "large room, load"],
  [/\b(given up|gives up|let go)\b/i, "abandoned, released, timed out"],
  [/\bfor good\b/i, "permanently"],
  [/\b(at leisure|soon|seldom)\b/i, "low priority, immediately, rarely"],
  [/\bthe past\b/i, "history"],
  [/\b(footing|headway)\b/i, "checkpoint floor, progress"],
  [/\b(whoever|whomever)\b/i, "the client, the gateway, … (name the subject)"],
];

/** Words that must not be a part of an exported camelCase name. */
const REPLACED_IN_NAMES =
  /^(tell|tells|told|say|says|said|hear|hears|heard|news|tidings|lobby|knock|standing|pace|paces|deed|deeds|trouble|mend|crowd|seldom|footing|headway)$/;

function faults(texts: ReadonlyMap<string, string>): readonly string[] {
  return [...texts].flatMap(([where, text]) =>
    REPLACED.flatMap(([word, term]) => (word.test(text) ? [`${where}: "${word.exec(text)![0]}", write ${term}`] : [])),
  );
}

test("[LANG1] settings and commands are described with the terms of the glossary", () => {
  const texts = new Map<string, string>();
  for (const { name, summary, settings } of commands) {
    texts.set(`coroom ${name}`, summary);
    for (const [setting, { meaning }] of readableSettings(settings)) texts.set(setting, meaning);
  }
  expect(texts.size).toBeGreaterThan(250);
  expect(faults(texts)).toEqual([]);
});

test("[LANG2] metrics are described with the terms of the glossary", async () => {
  const texts = new Map(Object.values(await allMetrics()).flatMap((metrics) => metrics.map(({ name, help }) => [name, help] as const)));
  expect(texts.size).toBeGreaterThan(100);
  expect(faults(texts)).toEqual([]);
});

test.each([
  "gateway/openapi.json",
  "gateway/operations-openapi.json",
  "gateway/usage-openapi.json",
  "document-service/openapi.json",
  "document-service/history-openapi.json",
  "leaderboard/openapi.json",
])("[LANG3] %s is described with the terms of the glossary", (file) => {
  const texts = new Map<string, string>();
  const collect = (value: unknown, path: string): void => {
    if (typeof value !== "object" || value === null) return;
    for (const [key, inner] of Object.entries(value)) {
      if ((key === "description" || key === "summary") && typeof inner === "string") texts.set(`${path}/${key}`, inner);
      else collect(inner, `${path}/${key}`);
    }
  };
  collect(JSON.parse(readFileSync(file, "utf8")), "");
  expect(texts.size).toBeGreaterThan(20);
  expect(faults(texts)).toEqual([]);
});

test("[LANG4] exported names use the terms of the glossary", () => {
  const files = execFileSync("git", ["ls-files", "*.ts"], { encoding: "utf8" }).trim().split("\n");
  const bad = files.flatMap((file) =>
    [
      ...readFileSync(file, "utf8").matchAll(/^export (?:declare |abstract |async )*(?:class|interface|type|function|const) (\w+)/gm),
    ].flatMap(([, name]) =>
      name!
        .split(/(?<=[a-z0-9])(?=[A-Z])|_/)
        .filter((part) => REPLACED_IN_NAMES.test(part.toLowerCase()))
        .map((part) => `${file}: ${name} ("${part}")`),
    ),
  );
  expect(bad).toEqual([]);
});

test("[LANG5] the glossary has one row for each term, in alphabetical order", () => {
  const terms = [...readFileSync("docs/GLOSSARY.md", "utf8").matchAll(/^\| ([a-z][^|]*?) \|/gm)]
    .map(([, term]) => term!)
    .filter((term) => term !== "term");
  expect(terms.length).toBeGreaterThanOrEqual(40);
  expect(terms).toEqual([...new Set(terms)].toSorted((one, other) => one.localeCompare(other)));
});
