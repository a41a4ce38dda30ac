import { expect, test } from "vitest";

import type { TenantId } from "../shared/ids.ts";
import { UnreadData } from "./unread-data.ts";

type FakeReader = { readonly name: string; waitingBytes: number };

function rig(bytesMax: number) {
  const cut: string[] = [];
  const unread = new UnreadData<FakeReader>(bytesMax, ({ name }) => void cut.push(name));
  const enter = (name: string, tenant?: string, user = ""): ((bytes: number) => void) & { readonly reader: FakeReader } => {
    const reader: FakeReader = { name, waitingBytes: 0 };
    unread.enter(reader);
    if (tenant !== undefined) unread.identify(reader, { tenant: tenant as TenantId, user });
    const send = (bytes: number): void => {
      reader.waitingBytes += bytes;
      unread.receiveSent(reader);
    };
    return Object.assign(send, { reader });
  };
  return { cut, unread, enter };
}

test("[YUR1] above the limit the heaviest user of the heaviest tenant loses the socket with the most unread bytes", () => {
  const { cut, unread, enter } = rig(1_000);
  const honest = enter("honest", "acme", "ann");
  honest(400); // More than any other socket, and more than any other user.
  const guests = ["guest 1", "guest 2"].map((name) => enter(name, "evil", name));
  for (const send of guests) send(100);
  const flood = [1, 2].map((number) => enter(`flood ${number}`, "evil", "eve"));
  flood[0]!(190);
  flood[1]!(180);
  expect(cut).toEqual([]);
  honest(50);
  expect([cut, unread.bytes]).toEqual([["flood 1"], 830]);
});

test("[YUR3] data that was read counts no longer, although nothing reports that", () => {
  const { cut, unread, enter } = rig(1_000);
  const [ann, ben] = [enter("ann", "acme", "ann"), enter("ben", "acme", "ben")];
  ann(900);
  ann.reader.waitingBytes = 0;
  ben(900);
  expect([cut, unread.bytes]).toEqual([[], 900]);
  unread.forget(ben.reader);
  expect(unread.bytes).toBe(0);
});

test("[YUR4] sockets without an accepted token count together, and a second token does not change the user of a socket", () => {
  const { cut, unread, enter } = rig(1_000);
  const ann = enter("ann", "acme", "ann");
  ann(450);
  const strangers = [1, 2].map((number) => enter(`stranger ${number}`));
  for (const send of strangers) send(250);
  unread.identify(ann.reader, { tenant: "other" as TenantId, user: "" });
  const other = enter("other", "other", "ben");
  other(450);
  expect(cut).toEqual(["stranger 1", "ann"]);
});
