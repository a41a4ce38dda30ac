import { expect, test } from "vitest";

import { type BoardName, BOARD_NAMES_MAX } from "../../shared/bus/board-messages.ts";
import type { RoomKey, UserId } from "../../shared/ids.ts";
import { FakeClock } from "../../shared/testing/fake-clock.ts";
import { UntoldNames } from "./untold-names.ts";

const nameOf = (user: string, name = user): BoardName => ({ room: "acme.plan" as RoomKey, user: user as UserId, name });

function gathered() {
  const clock = new FakeClock();
  const told: (readonly BoardName[])[] = [];
  return { clock, told, names: new UntoldNames(clock, (names) => told.push(names)) };
}

test("[GBO15] those who come within a moment are told of together, each by the last name", async () => {
  const { clock, told, names } = gathered();
  for (const name of [nameOf("ann", "Ann"), nameOf("bob"), nameOf("ann", "Anne")]) names.add(name);
  expect(told).toEqual([]);
  await clock.advance(100);
  expect(told).toEqual([[nameOf("ann", "Anne"), nameOf("bob")]]);
  await clock.advance(1_000);
  names.add(nameOf("cy"));
  await clock.advance(100);
  expect(told.slice(1)).toEqual([[nameOf("cy")]]);
});

test("[GBO16] no more are told of at once than a message holds, and none is left when the gateway ends", async () => {
  const { clock, told, names } = gathered();
  for (let user = 0; user <= BOARD_NAMES_MAX; user++) names.add(nameOf(`user-${user}`));
  expect(told.map(({ length }) => length)).toEqual([BOARD_NAMES_MAX]);
  names.tellAll();
  await clock.advance(1_000);
  expect(told.map(({ length }) => length)).toEqual([BOARD_NAMES_MAX, 1]);
});
