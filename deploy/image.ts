/** Reads `deploy/Dockerfile`: the files that its stages copy, and the variables that its image sets for every role. */

import { readFileSync } from "node:fs";

import type { Environment } from "./role-settings.ts";

type Copy = { readonly fromBuild: boolean; readonly sources: readonly string[] };
type ImageStage = { readonly copies: readonly Copy[]; readonly text: string };

const lines = readFileSync("deploy/Dockerfile", "utf8").replaceAll(/\\\n/g, " ").split("\n");
const starts = lines.flatMap((line, at) => (line.startsWith("FROM ") ? [at] : []));

export const [buildStage, finalStage] = starts.map((start, index) => stageOf(lines.slice(start, starts[index + 1]))) as [
  ImageStage,
  ImageStage,
];

/** The variables of the `ENV` instruction. */
export function imageEnvironment(): Environment {
  const [, variables] = /^ENV (.*)$/m.exec(finalStage.text)!;
  return Object.fromEntries(
    variables!
      .trim()
      .split(/\s+/)
      .map((pair) => pair.split("=") as [string, string]),
  );
}

function stageOf(own: readonly string[]): ImageStage {
  const copies = own.flatMap((line) => {
    const copied = /^COPY (?<from>--from=build )?(?<paths>.+)$/.exec(line)?.groups;
    if (copied === undefined) return [];
    return [{ fromBuild: copied["from"] !== undefined, sources: copied["paths"]!.split(" ").slice(0, -1) }];
  });
  return { copies, text: own.join("\n") };
}
