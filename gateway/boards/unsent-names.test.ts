import { expect, test } from "vitest";

import { type DisplayName, DISPLAY_NAMES_MAX } from "../../shared/bus/board-messages.ts";
import type { RoomKey, UserId } from "../../shared/ids.ts";
import { FakeClock } from "../../shared/testing/fake-clock.ts";
import { UnpublishedNames } from "./board-host.ts";

const nameOf = (user: string, name = user): DisplayName => ({ room: "acme.plan" as RoomKey, user: user as UserId, name });

function gathered() {
  const clock = new FakeClock();
  const published: (readonly DisplayName[])[] = [];
  return { clock, published, names: new UnpublishedNames(clock, (names) => published.push(names)) };
}

test("[GBO15] the names of users who join within 100 ms are published together, each user with the latest name", async () => {
  const { clock, published, names } = gathered();
  for (const name of [nameOf("ann", "Ann"), nameOf("bob"), nameOf("ann", "Anne")]) names.add(name);
  expect(published).toEqual([]);
  await clock.advance(100);
  expect(published).toEqual([[nameOf("ann", "Anne"), nameOf("bob")]]);
  await clock.advance(1_000);
  names.add(nameOf("cy"));
  await clock.advance(100);
  expect(published.slice(1)).toEqual([[nameOf("cy")]]);
});

test("[GBO16] a batch has at most as many names as a message holds, and none is left when the gateway stops", async () => {
  const { clock, published, names } = gathered();
  for (let user = 0; user <= DISPLAY_NAMES_MAX; user++) names.add(nameOf(`user-${user}`));
  expect(published.map(({ length }) => length)).toEqual([DISPLAY_NAMES_MAX]);
  names.publishAll();
  await clock.advance(1_000);
  expect(published.map(({ length }) => length)).toEqual([DISPLAY_NAMES_MAX, 1]);
});
