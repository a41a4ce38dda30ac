/** Shows what happened, newest first. */

import { element } from "../../io/element.ts";
import { tagged } from "../../io/tagged.ts";
import { clockTime } from "../format.ts";
import { type Happening, type Happenings, NOTHING_YET, SHOWN, type Shown } from "../happenings.ts";
import { toned } from "./fleet-view.ts";
import { keyedRows, say } from "./keyed-rows.ts";

const ROWS_MAX = 100;

export function eventsView(): (happenings: Happenings) => void {
  const [choice, empty] = [element("events-shown", HTMLElement), element("events-empty", HTMLElement)];
  const rows = keyedRows<Happening>(element("events", HTMLElement), ({ seq, at }) => `${seq} ${at}`, emptyRow, fill);
  let shown: Shown = "notable";
  let known = NOTHING_YET;

  const show = (happenings: Happenings): void => {
    known = happenings;
    const chosen = happenings.rows.filter(SHOWN[shown].shows).slice(0, ROWS_MAX);
    rows(chosen);
    say(empty, chosen.length > 0 ? "" : SHOWN[shown].whenEmpty);
  };
  const buttons = (Object.keys(SHOWN) as Shown[]).map((name) => {
    const button = tagged("button", "", SHOWN[name].label) as HTMLButtonElement;
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

function emptyRow({ at, tone, by }: Happening): HTMLElement {
  const date = new Date(at);
  const time = tagged("time", "", clockTime(date)) as HTMLTimeElement;
  [time.dateTime, time.title] = [at, `${date.toLocaleString()}, told by ${by}`];
  return toned(tagged("li", "", time, tagged("div", "", tagged("div", "what"), tagged("div", "why"))), tone);
}

/** A takeover grows. */
function fill(row: HTMLElement, { what, why }: Happening): void {
  say(row.querySelector<HTMLElement>(".what")!, what);
  say(row.querySelector<HTMLElement>(".why")!, why);
}
