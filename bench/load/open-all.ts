/** Opens as many sockets at once as a gateway's accept queue holds. */

const OPENING_MAX = 128;

export async function openAll(many: readonly { open(): Promise<void> }[]): Promise<void> {
  let next = 0;
  const openNext = async (): Promise<void> => {
    while (next < many.length) await many[next++]!.open();
  };
  await Promise.all(Array.from({ length: OPENING_MAX }, openNext));
}
