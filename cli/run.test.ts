/** What a command line comes to. */

import { readFileSync } from "node:fs";

import { expect, test } from "vitest";

import { envName, flagName, text } from "../shared/config.ts";
import { type Command, command } from "./command.ts";
import { commands } from "./commands.ts";
import { runCommandLine } from "./run.ts";
import { startGroups, startSettings } from "./settings.ts";

/** What it prints. */
async function printed(line: string, table: readonly Command[] = commands, env: Record<string, string> = {}): Promise<string> {
  const said: string[] = [];
  await runCommandLine(
    line.split(" ").filter((word) => word !== ""),
    table,
    { env, say: (line) => said.push(line), warn: (line) => said.push(`warning: ${line}`) },
  );
  return said.join("\n");
}

const echo = command({
  name: "say again",
  summary: "prints",
  settings: { word: { parse: text, meaning: "what" } },
  examples: [],
  run: async ({ word }, say) => say(word),
});

test("[RUN1] a command is run with what its flags and variables say", async () => {
  expect(await printed("say again --word one", [echo], { COROOM_WORD: "two" })).toBe("one");
  expect(await printed("say again", [echo], { COROOM_WORD: "two" })).toBe("two");
  await expect(printed("say again", [echo])).rejects.toThrow("COROOM_WORD is not set: what");
  await expect(printed("say again --wrod one", [echo])).rejects.toThrow("no such flag: --wrod; see coroom say again --help");
  await expect(printed("say again --word", [echo])).rejects.toThrow("no value is given with --word; see coroom say again --help");
});

test.each(["", "--help", "-h"])("[RUN2] coroom %s lists every command with what it does, and no setting", async (line) => {
  const lines = (await printed(line)).split("\n");
  for (const { name, summary } of commands)
    expect(lines.some((said) => said.trim().startsWith(`coroom ${name} `) && said.endsWith(summary))).toBe(true);
  expect(lines.length).toBeLessThan(commands.length + 6);
});

test("[RUN3] help of one command tells of it alone, wherever it is asked for", async () => {
  const help = await printed("kick --help");
  expect(help).toContain("coroom kick: sends a user out of a room");
  expect(help).toContain("  coroom kick --user bob --room notes");
  expect(help).toMatch(/^  --user +id of the user \(default empty\)$/m);
  expect(help).toMatch(/^  --url +COROOM_URL +a gateway/m);
  expect(help).not.toContain("--nats-url");
  for (const line of ["--help kick", "kick -h", "kick --user bob --help"]) expect(await printed(line)).toBe(help);
});

test("[RUN4] start's help has every setting, as flag and variable, under each role that reads it", async () => {
  const help = await printed("start --help");
  for (const name of Object.keys(startSettings)) expect(help).toMatch(new RegExp(`^  ${flagName(name)} +${envName(name)} `, "m"));
  const [, ...parts] = help.split(
    /^  (this process|every role|placement|room-server|document-service|leaderboard|gateway|y-websocket|probe)$/m,
  );
  const named = Object.fromEntries(
    parts.flatMap((part, index) => (index % 2 === 0 ? [[part, parts[index + 1]!.match(/(?<=^  )--[a-z0-9-]+/gm)!]] : [])),
  );
  expect(named).toEqual(
    Object.fromEntries(Object.entries(startGroups).map(([title, settings]) => [title, Object.keys(settings).map(flagName)])),
  );
});

test.each(commands.map(({ name }) => name))("[RUN8] the help of %s shows each default as one would write it", async (name) => {
  expect(await printed(`${name} --help`)).not.toContain("[object");
});

test("[RUN5] what is no command is refused, help or not, and a group lists its own", async () => {
  await expect(printed("nonsense --help")).rejects.toThrow('there is no command "nonsense": see coroom --help');
  await expect(printed("ops nonsense")).rejects.toThrow('there is no command "ops nonsense": see coroom ops');
  await expect(printed("start now")).rejects.toThrow('"now" is neither a command nor a --flag');
  for (const line of ["ops", "ops --help"]) {
    const help = await printed(line);
    expect(help.match(/^  coroom (\S+)/gm)).toEqual(commands.filter(({ name }) => name.startsWith("ops ")).map(() => "  coroom ops"));
  }
});

test("[RUN9] help is a word as well as a flag, alone and before a command", async () => {
  expect(await printed("help")).toBe(await printed("--help"));
  expect(await printed("help ops watch")).toBe(await printed("ops watch --help"));
});

test("[RUN6] the version is that of package.json", async () => {
  expect(await printed("--version")).toBe((JSON.parse(readFileSync("package.json", "utf8")) as { version: string }).version);
});

test("[RUN7] a misspelt variable is refused before a command does anything, and one of nobody's is warned of", async () => {
  await expect(printed("say again --word one", [echo], { COROOM_WROD: "two" })).rejects.toThrow(
    "there is no setting COROOM_WROD: COROOM_WORD is meant",
  );
  expect(await printed("say again --word one", [echo], { COROOM_LATER_SETTING: "two" })).toMatch(
    /^warning: COROOM_LATER_SETTING is no setting of this version[^\n]*\none$/,
  );
});
