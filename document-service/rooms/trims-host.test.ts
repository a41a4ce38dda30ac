import { expect, test } from "vitest";

import { FakeClock } from "../../shared/testing/fake-clock.ts";
import { TrimsHost, type Trimmed } from "./trims-host.ts";

class Room implements Trimmed {
  isDue = true;
  isBeingTrimmed = false;
  done: () => void = () => {};

  isTrimDue(): boolean {
    return this.isDue && !this.isBeingTrimmed;
  }

  trim(): Promise<void> {
    this.isBeingTrimmed = true;
    return new Promise((resolve) => {
      this.done = () => {
        this.isDue = this.isBeingTrimmed = false;
        resolve();
      };
    });
  }
}

const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test("[TRM9] logs are trimmed one by one, each once, and what is due no more is passed over", async () => {
  const rooms = Array.from({ length: 4 }, () => new Room());
  const trims = new TrimsHost(new FakeClock());
  const underWay = (): number[] => rooms.flatMap((room, index) => (room.isBeingTrimmed ? [index] : []));
  trims.receiveDue(rooms);
  expect(underWay()).toEqual([0]);
  trims.receiveDue(rooms.slice(1));
  expect(underWay(), "another look begins no second one").toEqual([0]);
  rooms[1]!.isDue = false;
  rooms[0]!.done();
  await settled();
  expect(underWay()).toEqual([2]);
  rooms[2]!.done();
  await settled();
  expect(underWay()).toEqual([3]);
  rooms[3]!.done();
  await settled();
  expect(underWay()).toEqual([]);
  rooms[1]!.isDue = true;
  trims.receiveDue([rooms[1]!]);
  expect(underWay()).toEqual([1]);
});
