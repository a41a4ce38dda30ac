/**
 * An engine in a container. It has the same methods as an engine that runs as a child process: a test can kill it,
 * pause it, and restart it on its port and data. It needs a container engine; images are pulled, or were built on the
 * machine.
 */

import { GenericContainer, getContainerRuntimeClient, Wait } from "testcontainers";

import type { Exit } from "../../engines/child.ts";
import type { Engine } from "../../engines/engine.ts";
import { claimPort } from "../../engines/free-port.ts";
import { eventually } from "../system/eventually.ts";

type ContainerProgram = {
  readonly image: string;
  readonly command: readonly string[];
  /** The port of the engine. */
  readonly port: number;
  readonly scheme: string;
  /** Files for the container, by their path in it. */
  readonly files: Readonly<Record<string, string>>;
  readonly isReady: (port: number) => Promise<boolean>;
};

const HOST = "127.0.0.1";
const READY_MS_MAX = 60_000;

export async function runContainer(program: ContainerProgram): Promise<Engine> {
  const port = await claimPort(0, HOST, "port");
  const started = await new GenericContainer(program.image)
    .withCommand([...program.command])
    .withCopyContentToContainer(Object.entries(program.files).map(([target, content]) => ({ target, content })))
    .withExposedPorts({ container: program.port, host: port })
    .withWaitStrategy(Wait.forListeningPorts())
    .start();
  const { container: containers } = await getContainerRuntimeClient();
  const container = containers.getById(started.getId());
  const untilReady = (): Promise<void> => eventually(`${program.image} answers on port ${port}`, () => program.isReady(port), READY_MS_MAX);
  const ended = (): Promise<Exit> =>
    container.wait().then(({ StatusCode }: { StatusCode: number }) => ({ code: StatusCode, signal: null }));
  const pidOf = async (): Promise<number> => (await container.inspect()).State.Pid;

  await untilReady();
  let exited = ended();
  let pid = await pidOf();
  return {
    name: "container",
    url: `${program.scheme}://${HOST}:${port}`,
    port,
    get pid() {
      return pid;
    },
    get exited() {
      return exited;
    },
    kill: (signal) => void container.kill({ signal }),
    restart: async () => {
      await container.stop().catch(ignoreStopped);
      await container.start();
      await untilReady();
      exited = ended();
      pid = await pidOf();
    },
    stop: async () => void (await started.stop()),
  };
}

/** 304: the container does not run. */
function ignoreStopped(error: unknown): void {
  if ((error as { statusCode?: number }).statusCode !== 304) throw error;
}
