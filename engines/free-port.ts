/** Ports for engines: checked before the start, so that a taken one is named plainly and not read out of a server's log. */
import { randomInt } from "node:crypto";
import { createServer } from "node:net";
import { assert } from "../shared/assert.ts";
import { EngineError } from "./engine-error.ts";
import { isErrno } from "../shared/io/errno.ts";

/** Below the range outgoing connections draw from: a restarted engine finds its port still free. */
const PORTS = { from: 15_000, below: 32_000 };
const ATTEMPTS_MAX = 500;

/** The wanted port if it is free, or any free one where none is wanted (absent or 0). */
export async function claimPort(wanted: number | undefined, host: string, setting: string): Promise<number> {
  if (wanted !== undefined && wanted !== 0) {
    if (await canListen(wanted, host)) return wanted;
    throw new EngineError(
      "port-in-use",
      `port ${wanted} on ${host} is already in use or not allowed: stop what listens there, or set ${setting} to another port (0 picks a free one)`,
    );
  }
  const [port] = await claimFreePorts(1, host);
  assert(port !== undefined, "one port was asked for");
  return port;
}

/** So many different ones, for servers that have to know each other's before they start. */
export async function claimFreePorts(count: number, host: string): Promise<readonly number[]> {
  const found = new Set<number>();
  for (let attempt = 0; found.size < count; attempt += 1) {
    if (attempt === ATTEMPTS_MAX)
      throw new EngineError("port-in-use", `no free ports were found on ${host} between ${PORTS.from} and ${PORTS.below}`);
    const port = randomInt(PORTS.from, PORTS.below);
    if (await canListen(port, host)) found.add(port);
  }
  return [...found];
}

/** The first of so many free ones in a row. */
export async function claimNeighbouringPorts(count: number, host: string): Promise<number> {
  for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt += 1) {
    const first = randomInt(PORTS.from, PORTS.below - count);
    const free = await Promise.all(Array.from({ length: count }, (_, offset) => canListen(first + offset, host)));
    if (free.every(Boolean)) return first;
  }
  throw new EngineError("port-in-use", `no ${count} free ports in a row were found on ${host} between ${PORTS.from} and ${PORTS.below}`);
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
