/** The refused names of a call, with their texts in the answer. The next call reuses it. */
export interface RejectedNodes {
  readonly count: number;
  /** Positions of the names, in the order of refusal; the first `count` are set. */
  readonly positions: Uint32Array;
  /** Numbers of texts, from 1. */
  readonly texts: Uint8Array;
}

export class RejectedNodeList implements RejectedNodes {
  positions = new Uint32Array(1024);
  texts = new Uint8Array(1024);
  count = 0;

  begin(names: number): void {
    this.count = 0;
    if (names <= this.positions.length) return;
    this.positions = new Uint32Array(names * 2);
    this.texts = new Uint8Array(names * 2);
  }

  add(position: number, text: number): void {
    this.positions[this.count] = position;
    this.texts[this.count++] = text;
  }
}
