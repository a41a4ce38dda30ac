/**
 * Counts the entries of arrays that `find` and `filter` are given during a call. Work that grows with the square of a
 * client's input shows in the count, on any machine.
 */

type Searched = (this: unknown[], ...given: unknown[]) => unknown;

export function stepsDuring(call: () => void): number {
  const { find, filter } = Array.prototype;
  let steps = 0;
  const counted = (search: Searched): Searched =>
    function (...given) {
      steps += this.length;
      return search.apply(this, given);
    };
  Object.assign(Array.prototype, { find: counted(find as Searched), filter: counted(filter as Searched) });
  try {
    call();
  } finally {
    Object.assign(Array.prototype, { find, filter });
  }
  return steps;
}
