import { execFileSync, spawnSync } from "node:child_process";

import { expect, test } from "vitest";

const LOGS = `import("./dist/shared/io/pino-log.js").then(({ pinoLog }) => pinoLog({ role: "gateway" }, "info").info({ port: 8080 }, "gateway is listening"))`;

test("[PLOG1] the log has one line of JSON per event if the output is not a terminal", () => {
  const { stderr } = spawnSync(process.execPath, ["-e", LOGS], { encoding: "utf8" });
  expect(JSON.parse(stderr)).toMatchObject({ level: 30, role: "gateway", port: 8080, msg: "gateway is listening" });
});

test("[PLOG2] a terminal gets a line that a person can read, with the local time", () => {
  // `script` gives the process a terminal.
  const shown = execFileSync("script", ["-qec", `NO_COLOR=1 ${process.execPath} -e '${LOGS}'`, "/dev/null"], { encoding: "utf8" });
  expect(shown).toMatch(/^\[\d\d:\d\d:\d\d\.\d{3}\] INFO: gateway: gateway is listening \{"port":8080\}\s*$/);
});

test("[PLOG3] a process goes on while the disk with its log is full", () => {
  const goesOn = `${LOGS}.then(() => setTimeout(() => process.stdout.write("goes on"), 10))`;
  const { stdout, status } = spawnSync("sh", ["-c", 'exec "$0" -e "$1" 2>/dev/full', process.execPath, goesOn], { encoding: "utf8" });
  expect({ stdout, status }).toEqual({ stdout: "goes on", status: 0 });
});
