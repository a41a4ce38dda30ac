/** Chooses ports for engines. Checking before the start gives a clear error instead of a line in a server's log. */

import { createServer } from "node:net";

import { assert } from "../shared/assert.ts";
import { isErrno } from "../shared/io/system-error.ts";
import { EngineError } from "./engine-error.ts";

/** Below the range of outgoing connections, so that a restarted engine finds its port free. */
const PORTS = { from: 15_000, below: 32_000 };
const ATTEMPTS_MAX = 500;

/**
 * Each process tries the ports in order from an offset of its own. With random ports, two processes that start servers at
 * the same time sometimes chose the same one, and clients of one server reached the other.
 */
let offset = process.pid * 251;
function nextPort(): number {
  return PORTS.from + (offset++ % (PORTS.below - PORTS.from));
}

/** Returns the wanted port if it is free, or any free port when `wanted` is absent or 0. */
export async function claimPort(wanted: number | undefined, host: string, setting: string): Promise<number> {
  if (wanted !== undefined && wanted !== 0) {
    if (await canListen(wanted, host)) return wanted;
    throw new EngineError(
      "port-in-use",
      `cannot listen on ${host}:${wanted}: port in use or not allowed. Stop the other process, or set ${setting} to another port (0 chooses a free port)`,
    );
  }
  const [port] = await claimFreePorts(1, host);
  assert(port !== undefined, "one port was asked for");
  return port;
}

/** Returns different free ports, for servers that need each other's ports before they start. */
export async function claimFreePorts(count: number, host: string): Promise<readonly number[]> {
  const found = new Set<number>();
  for (let attempt = 0; found.size < count; attempt += 1) {
    if (attempt === ATTEMPTS_MAX)
      throw new EngineError(
        "port-in-use",
        `no free ports found on ${host} between ${PORTS.from} and ${PORTS.below}. Stop processes that use these ports`,
      );
    const port = nextPort();
    if (await canListen(port, host)) found.add(port);
  }
  return [...found];
}

/** Returns the first of `count` consecutive free ports. */
export async function claimNeighbouringPorts(count: number, host: string): Promise<number> {
  for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt += 1) {
    const first = nextPort();
    offset += count;
    const free = await Promise.all(Array.from({ length: count }, (_, index) => canListen(first + index, host)));
    if (free.every(Boolean)) return first;
  }
  throw new EngineError(
    "port-in-use",
    `no ${count} consecutive free ports found on ${host} between ${PORTS.from} and ${PORTS.below}. Stop processes that use these ports`,
  );
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
