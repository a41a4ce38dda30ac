import { expect, test } from "vitest";

import { encodeJson } from "../../../shared/bus/json-messages.ts";
import { subjectsOf } from "../../../shared/bus/subjects.ts";
import type { GatewayId, RoomKey } from "../../../shared/ids.ts";
import type { NatsConnection } from "../../../shared/io/nats.ts";
import { natsAdminCommands } from "./nats-admin.ts";

test("[ADN19] an answer with more members than a call takes arguments is read", async () => {
  const member = { user: "u", name: "", connection: "c", write: true };
  const data = encodeJson({ kicked: 0, gateway: "other", members: Array.from({ length: 150_000 }, () => member) });
  const answers = async function* () {
    yield { data };
  };
  const nats = { requestMany: async () => answers() } as unknown as NatsConnection;
  const commands = natsAdminCommands(nats, subjectsOf("test"), { gateway: "own" as GatewayId, running: () => ["other"] });
  const { members, silentGateways } = await commands.issueCommand({ kind: "list-members", room: "acme.notes" as RoomKey });
  expect([members.length, silentGateways]).toEqual([150_000, []]);
});
