/** Shows events, newest first. */

import { element, tagged } from "../../io/element.ts";
import { clockTime } from "../format.ts";
import { type EventRow, type EventRows, NO_EVENTS, EVENT_FILTERS, type EventFilter } from "../event-rows.ts";
import { withTone } from "./fleet-view.ts";
import { keyedRows, setText } from "./keyed-rows.ts";

const ROWS_MAX = 100;

export function eventsView(): (events: EventRows) => void {
  const [choice, empty] = [element("events-shown", HTMLElement), element("events-empty", HTMLElement)];
  const rows = keyedRows<EventRow>(element("events", HTMLElement), ({ seq, at }) => `${seq} ${at}`, emptyRow, fill);
  let shown: EventFilter = "notable";
  let known = NO_EVENTS;

  const show = (events: EventRows): void => {
    known = events;
    const chosen = events.rows.filter(EVENT_FILTERS[shown].shows).slice(0, ROWS_MAX);
    rows(chosen);
    setText(empty, chosen.length > 0 ? "" : EVENT_FILTERS[shown].whenEmpty);
  };
  const buttons = (Object.keys(EVENT_FILTERS) as EventFilter[]).map((name) => {
    const button = tagged("button", "", EVENT_FILTERS[name].label) as HTMLButtonElement;
    button.type = "button";
    button.ariaPressed = String(name === shown);
    button.addEventListener("click", () => {
      shown = name;
      for (const other of buttons) other.ariaPressed = String(other === button);
      show(known);
    });
    return button;
  });
  choice.replaceChildren(...buttons);
  return show;
}

function emptyRow({ at, tone, by }: EventRow): HTMLElement {
  const date = new Date(at);
  const time = tagged("time", "", clockTime(date)) as HTMLTimeElement;
  [time.dateTime, time.title] = [at, `${date.toLocaleString()}, reported by ${by}`];
  return withTone(tagged("li", "", time, tagged("div", "", tagged("div", "what"), tagged("div", "why"))), tone);
}

/** The count of a takeover grows. */
function fill(row: HTMLElement, { what, why }: EventRow): void {
  setText(row.querySelector<HTMLElement>(".what")!, what);
  setText(row.querySelector<HTMLElement>(".why")!, why);
}
