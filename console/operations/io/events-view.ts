/** Shows events, newest first. */

import { element, tagged } from "../../io/element.ts";
import { type EventRow, EVENT_FILTERS, type EventFilter, isFound, timesOf } from "../event-rows.ts";
import type { ConsoleAddress } from "../console-address.ts";
import { withTone } from "./fleet-view.ts";
import { keyedRows, setText } from "./keyed-rows.ts";

const ROWS_MAX = 100;

export function eventsView(
  change: (to: Partial<ConsoleAddress>) => void,
): (events: readonly EventRow[], address: Pick<ConsoleAddress, "events" | "find">) => void {
  const [choice, empty] = [element("events-shown", HTMLElement), element("events-empty", HTMLElement)];
  const rows = keyedRows<EventRow>(element("events", HTMLElement), ({ key }) => key, emptyRow, fill);
  const find = element("events-find", HTMLInputElement);
  find.addEventListener("input", () => change({ find: find.value }));
  const buttons = (Object.keys(EVENT_FILTERS) as EventFilter[]).map((name) => {
    const button = tagged("button", "", EVENT_FILTERS[name].label) as HTMLButtonElement;
    button.type = "button";
    button.addEventListener("click", () => change({ events: name }));
    return { name, button };
  });
  choice.replaceChildren(...buttons.map(({ button }) => button));

  return (events, { events: shown, find: wanted }) => {
    for (const { name, button } of buttons) button.ariaPressed = String(name === shown);
    if (find.value !== wanted) find.value = wanted;
    const chosen = events.filter((row) => EVENT_FILTERS[shown].shows(row) && isFound(row, wanted)).slice(0, ROWS_MAX);
    rows(chosen);
    setText(empty, chosen.length > 0 ? "" : wanted.trim() === "" ? EVENT_FILTERS[shown].whenEmpty : "No event matches the search.");
  };
}

function emptyRow({ tone }: EventRow): HTMLElement {
  return withTone(tagged("li", "", tagged("time", ""), tagged("div", "", tagged("div", "what"), tagged("div", "why"))), tone);
}

/** An episode ends, and the count of a takeover grows. */
function fill(row: HTMLElement, event: EventRow): void {
  const time = row.querySelector("time")!;
  setText(time, timesOf(event, new Date()));
  [time.dateTime, time.title] = [event.at, `${new Date(event.at).toLocaleString()}, reported by ${event.by}`];
  setText(row.querySelector<HTMLElement>(".what")!, event.what);
  setText(row.querySelector<HTMLElement>(".why")!, event.why);
}
