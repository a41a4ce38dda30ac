/**
 * HTTP from a simulated gateway to the document services, in place of `natsServices` and `serviceHttp`. A service that
 * dies breaks off its answers, a paused one answers late, and a gateway abandons a call after the time of `serviceHttp`.
 */

import type { IncomingMessage } from "node:http";

import type { ServiceCall } from "../../gateway/io/http/service-http.ts";
import type { ServiceDirectory } from "../../gateway/io/nats/nats-services.ts";
import type { InternalResponse } from "../../shared/io/internal-http.ts";
import type { DocumentServiceProcess } from "./document-service-process.ts";
import type { SimProcess } from "./sim-process.ts";
import type { World } from "./world.ts";

const SILENCE_MS_MAX = 15_000;
/** Interval at which a call checks whether its service has died. */
const CHECK_MS = 50;

export function simServices(process: SimProcess, world: World, services: () => readonly DocumentServiceProcess[]): ServiceDirectory {
  const { scheduler, latencyMs } = world;
  let turn = 0;
  const urls = (): string[] => {
    const all = services().map(({ process: { name } }) => `http://${name}`);
    turn = (turn + 1) % Math.max(1, all.length);
    return [...all.slice(turn), ...all.slice(0, turn)];
  };
  const ask = (url: URL, question: ServiceCall): Promise<IncomingMessage | undefined> =>
    new Promise((resolve) => {
      const service = services().find(({ process: { name } }) => name === url.hostname);
      let isOver = false;
      const settle = (answer: IncomingMessage | undefined): void => {
        if (isOver) return;
        isOver = true;
        callOff();
        resolve(answer);
      };
      const callOff = process.clock.after(SILENCE_MS_MAX, () => settle(undefined));
      const checkAlive = (): void => {
        if (isOver) return;
        if (service?.process.state !== "running" && service?.process.state !== "paused") return process.run(() => settle(undefined));
        scheduler.after(CHECK_MS, checkAlive);
      };
      scheduler.after(latencyMs(), () => {
        checkAlive();
        service?.process.run(
          () =>
            void service.answer(url, question).then((response) => {
              scheduler.after(latencyMs(), () => process.run(() => settle(messageOf(response))));
            }),
        );
      });
    });
  return { urls, firstHeartbeat: Promise.resolve(), ask };
}

/** The parts of an answer that `callServices` reads. */
function messageOf({ status, headers = {}, body }: InternalResponse): IncomingMessage {
  const bytes = typeof body === "string" ? new TextEncoder().encode(body) : (body ?? new Uint8Array(0));
  return {
    statusCode: status,
    headers: Object.fromEntries(
      [...Object.entries(headers), ["content-length", bytes.byteLength]].map(([name, value]) => [name, String(value)]),
    ),
    complete: true,
    resume: () => {},
    on: (event: string, receive: (chunk?: Uint8Array) => void) => {
      if (event === "data") receive(bytes);
      if (event === "close") receive();
    },
    [Symbol.asyncIterator]: async function* () {
      yield bytes;
    },
  } as unknown as IncomingMessage;
}
