/** The tab with all charts: time range, process, and one card for each chart that has values. */

import { element, tagged } from "../../io/element.ts";
import type { VitalsAnswer } from "../answers.ts";
import { CHARTS, chartsRemark, type ValuesOverTime } from "../charts.ts";
import { shortName } from "../format.ts";
import { type ConsoleAddress, RANGES } from "../console-address.ts";
import { type ChartMark, chartView } from "./charts-view.ts";
import { setText } from "./keyed-rows.ts";

type ShowCharts = (
  values: ValuesOverTime,
  processes: VitalsAnswer["processes"],
  address: Pick<ConsoleAddress, "minutes" | "process">,
  marks: readonly ChartMark[],
) => void;

const ROLE_NAMES: Readonly<Record<string, string>> = {
  "gateway": "Gateway",
  "room-server": "Room server",
  "document-service": "Document service",
  "leaderboard": "Leaderboard",
  "placement": "Placement",
};

export function chartsPage(change: (to: Partial<ConsoleAddress>) => void): ShowCharts {
  const [grid, remark] = [element("charts-grid", HTMLElement), element("charts-remark", HTMLElement)];
  const choice = element("charts-process", HTMLSelectElement);
  const charts = CHARTS.map(chartView);
  grid.append(...charts.map(({ card }) => card));
  const ranges = RANGES.map((minutes) => {
    const button = tagged("button", "", minutes === 60 ? "1 hour" : `${minutes} min`) as HTMLButtonElement;
    button.type = "button";
    button.addEventListener("click", () => change({ minutes }));
    return { minutes, button };
  });
  element("charts-range", HTMLElement).replaceChildren(...ranges.map(({ button }) => button));
  choice.addEventListener("change", () => change({ process: choice.value }));

  return (values, processes, { minutes, process }, marks) => {
    for (const range of ranges) range.button.ariaPressed = String(range.minutes === minutes);
    showChoice(choice, processes, process);
    for (const { show } of charts) show(values, minutes, marks);
    setText(remark, chartsRemark(values, processes.length === 0 ? "" : process)); // Before the first answer no process is known.
  };
}

/** A process that is named in the address stays selectable when it has stopped. */
function showChoice(choice: HTMLSelectElement, processes: VitalsAnswer["processes"], chosen: string): void {
  const named = [
    { value: "", text: "All processes" },
    ...processes.map(({ instance, role }) => ({ value: instance, text: `${ROLE_NAMES[role] ?? role} ${shortName(instance)}` })),
    ...(chosen === "" || processes.some(({ instance }) => instance === chosen) ? [] : [{ value: chosen, text: shortName(chosen) }]),
  ];
  if ([...choice.options].map(({ value }) => value).join() !== named.map(({ value }) => value).join())
    choice.replaceChildren(...named.map(({ value, text }) => new Option(text, value)));
  choice.value = chosen;
}
