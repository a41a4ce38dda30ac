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

test("[PLOG4] a warning contains the messages of its cause without a stack, and an error or a mistake of the program its stack", () => {
  const writes = `import("./dist/shared/io/pino-log.js").then(({ pinoLog }) => {
    const log = pinoLog({}, "info");
    const cause = new Error("the lease was not written", { cause: new Error("timeout") });
    log.warn({ room: "notes", cause: Object.assign(cause, { code: 503 }) }, "trying again");
    log.warn({ cause: new TypeError("no function") }, "trying again");
    log.error({ cause }, "given up");
    log.warn({ cause: new TypeError("fetch failed", { cause: new Error("connect ECONNREFUSED") }) }, "trying again");
    const refused = ["127.0.0.1", "::1"].map((host) => new Error("refused by " + host));
    log.warn({ cause: Object.assign(new AggregateError(refused), { code: "ECONNREFUSED" }) }, "trying again");
  })`;
  const { stderr } = spawnSync(process.execPath, ["-e", writes], { encoding: "utf8" });
  const [warning, mistake, error, network, addresses] = stderr
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as { room?: string; cause: { stack?: string } });
  expect(warning).toMatchObject({ room: "notes" });
  expect(warning!.cause).toEqual({ type: "Error", message: "the lease was not written: timeout", code: 503 });
  expect(mistake!.cause.stack).toContain("TypeError: no function");
  expect(error!.cause.stack).toContain("caused by: Error: timeout");
  expect(network!.cause).toEqual({ type: "TypeError", message: "fetch failed: connect ECONNREFUSED" });
  expect(addresses!.cause).toEqual({
    type: "AggregateError",
    message: "refused by 127.0.0.1, refused by ::1",
    code: "ECONNREFUSED",
  });
});
