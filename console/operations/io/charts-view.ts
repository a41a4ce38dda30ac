/** Draws the charts, and keeps them current. A vertical line marks the beginning of each event that needs attention. */

import uPlot from "uplot";

import { tagged } from "../../io/element.ts";
import { type Chart, chartData, type ChartLine, chartText, type ValuesOverTime } from "../charts.ts";
import { clockTime } from "../format.ts";
import { setText } from "./keyed-rows.ts";

export type ChartMark = { readonly at: number; readonly text: string };
type Drawn = { readonly plot: uPlot; readonly lines: readonly ChartLine[]; readonly figures: readonly HTMLElement[] };

const HEIGHT = 128;
/** All charts show the cursor at the same time. */
const CURSORS = "operations";
/** A mark is named when the cursor is at most this far away. */
const NEAR_SECONDS = 10;

/** Shows one chart in a card of its own. */
export function chartView(chart: Chart): {
  readonly card: HTMLElement;
  readonly show: (values: ValuesOverTime, minutes: number, marks: readonly ChartMark[]) => void;
} {
  const [legend, time, place] = [tagged("div", "chart-legend"), tagged("span", "chart-time"), tagged("div", "chart-plot")];
  const hint = tagged("p", "why", chart.hint);
  const card = tagged("section", "card chart", tagged("div", "chart-head", tagged("h2", "", chart.title), time), legend, place, hint);
  card.hidden = true;
  place.role = "img";
  let drawn: Drawn | undefined;
  let marked: readonly ChartMark[] = [];

  const showFigures = ({ plot, lines, figures }: Drawn): void => {
    const hovered = plot.cursor.idx ?? undefined;
    lines.forEach((_, index) => {
      const values = plot.data[index + 1] as (number | null)[];
      const value = hovered === undefined ? values.findLast((each) => each !== null) : values[hovered];
      setText(figures[index]!, value === null || value === undefined ? "–" : chart.show(value));
    });
    const at = hovered === undefined ? undefined : plot.data[0]![hovered]!;
    const mark = at === undefined ? undefined : marked.findLast((each) => Math.abs(each.at - at) <= NEAR_SECONDS);
    setText(time, at === undefined ? "" : `${clockTime(new Date(at * 1_000))}${mark === undefined ? "" : ` · ${mark.text}`}`);
  };
  const draw = (data: uPlot.AlignedData, lines: readonly ChartLine[]): Drawn => {
    const figures = lines.map(() => tagged("span", "figure"));
    legend.replaceChildren(
      ...lines.map(({ label }, index) => {
        const item = tagged("span", "chart-item", label, figures[index]!);
        item.style.setProperty("--line-color", `var(--line-${index + 1})`);
        return item;
      }),
    );
    const plot: uPlot = new uPlot(
      optionsOf(
        chart,
        lines,
        card,
        () => marked,
        () => drawn !== undefined && showFigures(drawn),
      ),
      data,
      place,
    );
    return { plot, lines, figures };
  };

  new ResizeObserver(() => drawn?.plot.setSize({ width: place.clientWidth, height: HEIGHT })).observe(place);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    drawn?.plot.destroy();
    drawn = undefined; // Drawn in the new colours by the next values.
  });

  return {
    card,
    show: (values, minutes, marks) => {
      const found = chartData(chart, values, minutes);
      card.hidden = found === undefined;
      if (found === undefined) return;
      place.ariaLabel = chartText(chart, found);
      marked = marks;
      const data: uPlot.AlignedData = [found.times, ...found.values];
      if (drawn !== undefined && drawn.lines.map(({ key }) => key).join() === found.lines.map(({ key }) => key).join())
        drawn.plot.setData(data);
      else {
        drawn?.plot.destroy();
        drawn = draw(data, found.lines);
      }
      showFigures(drawn);
    },
  };
}

function optionsOf(
  chart: Chart,
  lines: readonly ChartLine[],
  card: HTMLElement,
  marks: () => readonly ChartMark[],
  onCursor: () => void,
): uPlot.Options {
  const color = (name: string): string => getComputedStyle(card).getPropertyValue(name).trim();
  const axis = {
    stroke: color("--muted"),
    grid: { stroke: color("--line"), width: 1 },
    ticks: { show: false },
    font: `11px ${getComputedStyle(card).fontFamily}`,
  };
  return {
    width: card.querySelector(".chart-plot")!.clientWidth,
    height: HEIGHT,
    legend: { show: false },
    cursor: { sync: { key: CURSORS, setSeries: false }, drag: { x: false, y: false }, points: { size: 6 } },
    scales: { y: { range: (_, __, highest) => [0, highest === null || highest <= 0 ? 1 : highest * 1.15] } },
    axes: [
      {
        ...axis,
        size: 24,
        space: 52,
        values: (_, times) => times.map((at) => clockTime(new Date(at * 1_000)).slice(0, at % 60 === 0 ? 5 : 8)),
      },
      { ...axis, size: 58, space: 32, values: (_, values) => values.map((value) => (value === 0 ? "0" : chart.show(value))) },
    ],
    series: [
      {},
      ...lines.map((_, index) => ({ stroke: color(`--line-${index + 1}`), width: 1.5, points: { show: false }, spanGaps: false })),
    ],
    hooks: {
      setCursor: [onCursor],
      draw: [
        ({ ctx, bbox, valToPos, scales }) => {
          const { min, max } = scales["x"]!;
          ctx.save();
          [ctx.strokeStyle, ctx.lineWidth] = [color("--warning"), devicePixelRatio];
          ctx.setLineDash([3 * devicePixelRatio, 3 * devicePixelRatio]);
          for (const { at } of marks()) {
            if (min === undefined || max === undefined || min === null || max === null || at < min || at > max) continue;
            const x = Math.round(valToPos(at, "x", true));
            ctx.beginPath();
            ctx.moveTo(x, bbox.top);
            ctx.lineTo(x, bbox.top + bbox.height);
            ctx.stroke();
          }
          ctx.restore();
        },
      ],
    },
  };
}
