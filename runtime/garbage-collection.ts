import { setFlagsFromString } from 'node:v8';

/** Sets V8's garbage collector for a daemon that keeps little of what it reads. Node.js refuses these in NODE_OPTIONS. */
export function tuneGarbageCollection(): void {
  // V8 would mark the old generation each time the heap has grown by a third of its limit: for the extender with 5,000
  // nodes, whose live heap is about 25 of 192 MiB, once in thirty calls and for more time than such a call takes.
  setFlagsFromString('--heap-growing-percent=200');
  // V8 would put objects that survive their first collection into the old generation from the start. Each of those
  // then keeps its request and body, 70 kB for 500 names, until the old generation is marked.
  setFlagsFromString('--no-allocation-site-pretenuring');
}
