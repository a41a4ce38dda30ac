/** An entry that is there and does not decode: asking again helps only once somebody has seen to it, so nobody waits in its place. */
export class Undecodable extends Error {
  override readonly name = "Undecodable";
}
