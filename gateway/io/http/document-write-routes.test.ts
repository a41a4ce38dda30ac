import { IncomingMessage } from "node:http";
import { Socket } from "node:net";

import { Registry } from "prom-client";
import { expect, test } from "vitest";

import type { ClientId, Epoch, Millis, Seq, TenantId, UserId } from "../../../shared/ids.ts";
import { FakeClock } from "../../../shared/testing/fake-clock.ts";
import type { HttpRoute } from "../../http/route-table.ts";
import { gatewayMetrics } from "../../metrics.ts";
import type { WriteOutcome } from "../../rooms/writes-host.ts";
import { documentWriteRoutes } from "./document-write-routes.ts";

const PLENTY = { burst: 1_000, perSecond: 1_000 };
const COMMITTED: WriteOutcome = { kind: "committed", epoch: 1 as Epoch, seq: 1 as Seq };

/** A document service that makes an edit of every body. */
function madeEdit(): Promise<IncomingMessage> {
  const answer = new IncomingMessage(new Socket());
  answer.statusCode = 200;
  answer.push(Uint8Array.of(1, 2, 3));
  answer.push(null);
  return Promise.resolve(answer);
}

test("[GBO18] the token's name of an author over HTTP reaches the boards once the edit is stored; a name that only repeats the user id replaces no other", async () => {
  const names: unknown[][] = [];
  let outcome: WriteOutcome = COMMITTED;
  const rights = { read: true, write: true, admin: false, award: false, boards: false };
  const named = (user: string): string => ({ "u-17": "Ann" })[user] ?? user;
  const routes = documentWriteRoutes(
    {
      tokens: {
        verify: async (user: string) => ({
          kind: "valid" as const,
          identity: { tenant: "acme" as TenantId, user: user as UserId, name: named(user), rooms: ["*"], rights, expiresAt: 1e9 as Millis },
        }),
      } as never,
      documents: { urls: () => ["http://documents"], firstHeartbeat: Promise.resolve(), ask: madeEdit },
      writes: { write: () => Promise.resolve(outcome) },
      boards: { receiveWriter: (...writer) => void names.push(writer) },
      storage: { fullOn: () => undefined },
      rooms: { positionOf: () => undefined },
      clientIdOf: () => "client" as ClientId,
    },
    { internalSecret: "", eachUser: PLENTY, writersMax: 10, editBytesMax: 1_000 },
    { clock: new FakeClock(), metrics: gatewayMetrics(new Registry()) },
  );
  const write = async (place: string, user: string): Promise<number> => {
    const { answer } = routes.find(({ path }) => path.endsWith(place)) as HttpRoute;
    const headers: Readonly<Record<string, string>> = { "authorization": `Bearer ${user}`, "content-type": "application/octet-stream" };
    const request = { parameters: ["notes"], query: new URLSearchParams(), header: (name: string) => headers[name] ?? "" };
    const more = { body: Uint8Array.of(1), signal: new AbortController().signal, path: "", address: undefined };
    return (await answer({ ...request, ...more })).status;
  };
  for (const [place, status] of [["edits", 200], ["document", 201], ["restore", 200]] as const) expect(await write(place, "u-17")).toBe(status); // prettier-ignore
  expect(names).toEqual(Array.from({ length: 3 }, () => ["acme.notes", "u-17", "Ann"]));
  await write("edits", "backend");
  outcome = { kind: "unanswered" };
  expect(await write("edits", "u-17")).toBe(504);
  expect(names.length).toBe(3);
});
