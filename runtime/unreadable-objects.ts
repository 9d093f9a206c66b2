/**
 * The number of objects that this process cannot read, by kind. Owner: the decoder of each collection. Age: as the
 * collection. End: with the process. Apart from metrics.ts, because the command reads objects and has no metrics.
 */
export const unreadableObjects = new Map<string, number>();
