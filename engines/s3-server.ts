/**
 * A real S3 server for tests: OpenStack Swift with its S3 interface, from Debian's packages, unpacked without root
 * and run in one Python process on one disk. It checks every request's signature.
 */

import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { assert } from "../shared/assert.ts";
import { answersOverTcp } from "./ask.ts";
import { BINARIES } from "./binaries.ts";
import { claimDataDir } from "./data-dir.ts";
import { runEngine, type Engine } from "./engine.ts";
import { binaryMissing, type FindOptions, libraryPath } from "./find.ts";
import { claimNeighbouringPorts } from "./free-port.ts";
import { runProgram } from "./run-program.ts";
import { unpackedRoot } from "./unpacked.ts";

export type S3Server = Engine & { readonly accessKeyId: string; readonly secretAccessKey: string };

const SCRIPT = fileURLToPath(new URL("swift-in-one.py", import.meta.url));
const CREDENTIALS = { accessKeyId: "coroom:tests", secretAccessKey: "not-a-secret" };
const ASK_MS_MAX = 500;
const IMPORT_MS_MAX = 30_000;
/** The ports of the proxy, then of the account, container and object server. */
const PORTS = 4;

export async function startS3Server(options: FindOptions & { readonly dataDir: string }): Promise<S3Server> {
  const { python, env } = await findSwift(options);
  const dataDir = resolve(options.dataDir);
  const lock = claimDataDir(dataDir);
  try {
    const host = "127.0.0.1";
    const port = await claimNeighbouringPorts(PORTS, host);
    const engine = await runEngine({
      name: BINARIES.swift.name,
      url: `http://${host}:${port}`,
      port,
      command: {
        path: python,
        args: [SCRIPT, dataDir, String(port), CREDENTIALS.accessKeyId, CREDENTIALS.secretAccessKey],
        env,
        cwd: dataDir,
        logFile: join(dataDir, "swift.log"),
      },
      lock,
      isReady: () =>
        answersOverTcp({ host, port, send: `GET /healthcheck HTTP/1.0\r\n\r\n`, msMax: ASK_MS_MAX }, (received) =>
          received.startsWith("HTTP/1"),
        ),
    });
    return Object.assign(engine, CREDENTIALS);
  } catch (error) {
    lock.release();
    throw error;
  }
}

type Swift = { readonly python: string; readonly env: Readonly<Record<string, string>> };

async function findSwift(options: FindOptions): Promise<Swift> {
  const tried: string[] = [];
  const cache = resolve(options.cacheDir ?? join(".coroom", "cache"), "engines");
  const runs = (folder: string) => {
    const { python, env } = swiftIn(folder);
    return runProgram(python, ["-c", "import swift.common.wsgi, eventlet, pyeclib, xattr, lxml"], { msMax: IMPORT_MS_MAX, env }).then(
      () => true,
      () => false,
    );
  };
  const root = await unpackedRoot(BINARIES.swift, cache, { tried, print: options.print ?? (() => {}), runs });
  if (root === undefined) throw binaryMissing(BINARIES.swift, tried);
  return swiftIn(root);
}

/** Uses the machine's own Python if there is one. The packages match it, because both are from the same suite. */
function swiftIn(root: string): Swift {
  const own = "/usr/bin/python3";
  const libraries = libraryPath(root);
  assert(libraries !== "", "Swift's packages bring a library for erasure codes");
  const env = {
    PYTHONPATH: join(root, "usr/lib/python3/dist-packages"),
    PYTHONDONTWRITEBYTECODE: "1",
    LD_LIBRARY_PATH: libraries,
  };
  return { python: existsSync(own) ? own : join(root, "usr/bin/python3"), env };
}
