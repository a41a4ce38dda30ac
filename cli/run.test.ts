/** The effect of a command line. */

import { readFileSync } from "node:fs";

import { expect, test } from "vitest";

import { envName, flagName, readableSettings, text } from "../shared/settings/settings.ts";
import { type CliCommand, command } from "./command.ts";
import { commands } from "./commands.ts";
import { shownDefault } from "./help.ts";
import { runCommandLine } from "./run.ts";
import { startGroups, startSettings } from "./settings.ts";

/** Returns the printed text. */
async function printed(line: string, table: readonly CliCommand[] = commands, env: Record<string, string> = {}): Promise<string> {
  const printedLines: string[] = [];
  await runCommandLine(
    line.split(" ").filter((word) => word !== ""),
    table,
    { env, print: (line) => printedLines.push(line), warn: (line) => printedLines.push(`warning: ${line}`) },
  );
  return printedLines.join("\n");
}

const echo = command({
  name: "say again",
  summary: "prints",
  settings: { word: { parse: text, meaning: "what" } },
  examples: [],
  run: async ({ word }, print) => print(word),
});

test("[RUN1] a command receives the values of its flags and variables", async () => {
  expect(await printed("say again --word one", [echo], { COROOM_WORD: "two" })).toBe("one");
  expect(await printed("say again", [echo], { COROOM_WORD: "two" })).toBe("two");
  await expect(printed("say again", [echo])).rejects.toThrow("COROOM_WORD is not set: what");
  await expect(printed("say again --wrod one", [echo])).rejects.toThrow(
    "unknown flag: --wrod. Did you mean --word? Run coroom say again --help for the list.",
  );
  await expect(printed("say again --word", [echo])).rejects.toThrow("missing value for --word. Run coroom say again --help for the list.");
});

test.each(["", "--help", "-h"])("[RUN2] coroom %s lists every command with its summary, and no setting", async (line) => {
  const lines = (await printed(line)).split("\n");
  for (const { name, summary } of commands)
    expect(lines.some((printedLines) => printedLines.trim().startsWith(`coroom ${name} `) && printedLines.endsWith(summary))).toBe(true);
  expect(lines.length).toBeLessThan(commands.length + 6);
});

test("[RUN3] the help of a command describes only this command, wherever --help appears", async () => {
  const help = await printed("kick --help");
  expect(help).toContain("coroom kick: remove a user from a room");
  expect(help).toContain("Usage: coroom kick [USER] [flags]");
  expect(help).toMatch(/^  --user +Id of the user\. \(default empty\)$/m);
  expect(help).toMatch(/^  --url +COROOM_URL +URL of any gateway/m);
  expect(help).not.toContain("--nats-url");
  for (const line of ["--help kick", "kick -h", "kick --user bob --help"]) expect(await printed(line)).toBe(help);
});

test("[RUN10] the help of unban describes the sanction to lift, not one to impose", async () => {
  const help = await printed("unban --help");
  expect(help).toMatch(/^  --address +Banned IP address, instead of a user\./m);
  expect(help).toMatch(/^  --room +Room of the sanction\. Empty: a sanction in all rooms\./m);
  expect(help).not.toContain("to ban");
});

test("[RUN4] the help of start shows every setting under each role that reads it, basic settings before advanced ones", async () => {
  const help = await printed("start --help");
  const [basic, advanced] = help.split("\nAdvanced: ");
  for (const [name] of readableSettings(startSettings)) expect(help).toMatch(new RegExp(`^  ${flagName(name)} +${envName(name)} `, "m"));
  for (const [text, isBasic] of [
    [basic!, true],
    [advanced!, false],
  ] as const) {
    const [, ...parts] = text.split(
      /^  (this process|every role|placement|room-server|document-service|leaderboard|gateway|y-websocket|probe)$/m,
    );
    const named = parts.flatMap((part, index) =>
      index % 2 === 0 ? [[part, parts[index + 1]!.match(/(?<=^  )--[a-z0-9-]+/gm)!] as const] : [],
    );
    const declared = Object.entries(startGroups).map(([title, settings]) => [
      title,
      readableSettings(settings).flatMap(([name, { basic }]) => ((basic === true) === isBasic ? [flagName(name)] : [])),
    ]);
    expect(named).toEqual(declared.filter(([, names]) => names!.length > 0));
  }
});

test.each(commands.map(({ name }) => name))("[RUN8] the help of %s shows each default as one would write it", async (name) => {
  expect(await printed(`${name} --help`)).not.toContain("[object");
});

test("[RUN5] an unknown command is refused, with or without help, and a group lists its commands", async () => {
  await expect(printed("nonsense --help")).rejects.toThrow('unknown command "nonsense". Run coroom --help for the list.');
  await expect(printed("member")).rejects.toThrow('unknown command "member". Did you mean members? Run coroom --help for the list.');
  await expect(printed("ops nonsense")).rejects.toThrow('unknown command "ops nonsense". Run coroom ops for the list.');
  await expect(printed("start now")).rejects.toThrow('"now" is neither a command nor a --flag');
  for (const line of ["ops", "ops --help"]) {
    const help = await printed(line);
    expect(help.match(/^  coroom (\S+)/gm)).toEqual(commands.filter(({ name }) => name.startsWith("ops ")).map(() => "  coroom ops"));
  }
});

test("[RUN9] help is accepted as a word and as a flag, alone and before a command", async () => {
  expect(await printed("help")).toBe(await printed("--help"));
  expect(await printed("help ops watch")).toBe(await printed("ops watch --help"));
});

test.each(commands.map((command) => [command.name, command] as const))(
  "[RUN12] each default that the help of %s shows is accepted",
  (_, command) => {
    for (const [name, { parse, fallback, shownAs }] of readableSettings(command.settings)) {
      const shown = shownDefault({ fallback, shownAs });
      if (fallback !== undefined && !["none", "empty"].includes(shown)) expect(parse(shown), name).toEqual(fallback);
    }
  },
);

test("[RUN14] a printed name of a room reverses or ends no line of a terminal", async () => {
  expect(await printed("say again --word a\u202eb\u2028c", [echo])).toBe("a\\u202eb\\u2028c");
});

test("[RUN13] flags without a command are refused", async () => {
  await expect(printed("--verison")).rejects.toThrow("unknown flag: --verison. Did you mean --version? Run coroom --help for the list.");
  await expect(printed("--json")).rejects.toThrow("unknown flag: --json. Run coroom --help for the list.");
});

test("[RUN6] --version prints the version in package.json", async () => {
  expect(await printed("--version")).toBe((JSON.parse(readFileSync("package.json", "utf8")) as { version: string }).version);
});

test("[RUN7] a misspelt variable is refused before a command runs, and an unknown one causes a warning", async () => {
  await expect(printed("say again --word one", [echo], { COROOM_WROD: "two" })).rejects.toThrow(
    "unknown setting COROOM_WROD. Did you mean COROOM_WORD?",
  );
  expect(await printed("say again --word one", [echo], { COROOM_LATER_SETTING: "two" })).toMatch(
    /^warning: unknown setting COROOM_LATER_SETTING is ignored[^\n]*\none$/,
  );
});
