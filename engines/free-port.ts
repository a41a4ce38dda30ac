/** Ports for engines: checked before the start, so that a taken one is named plainly and not read out of a server's log. */
import { randomInt } from "node:crypto";
import { createServer } from "node:net";
import { EngineError } from "./engine-error.ts";
import { isErrno } from "./errno.ts";

/** Below the range outgoing connections draw from: a restarted engine finds its port still free. */
const PORTS = { from: 15_000, below: 32_000 };
const ATTEMPTS_MAX = 50;

/** The wanted port if it is free, or any free one where none is wanted (absent or 0). */
export async function claimPort(wanted: number | undefined, host: string, setting: string): Promise<number> {
  if (wanted !== undefined && wanted !== 0) {
    if (await canListen(wanted, host)) return wanted;
    throw new EngineError("port-in-use", `port ${wanted} on ${host} is already in use or not allowed: stop what listens there, or set ${setting} to another port (0 picks a free one)`);
  }
  for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt += 1) {
    const port = randomInt(PORTS.from, PORTS.below);
    if (await canListen(port, host)) return port;
  }
  throw new EngineError("port-in-use", `no free port was found on ${host}: set ${setting}`);
}

function canListen(port: number, host: string): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once("error", (error) => {
      if (isErrno(error, "EADDRINUSE", "EACCES")) resolve(false);
      else reject(error);
    });
    server.listen(port, host, () => server.close(() => resolve(true)));
  });
}
