import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

setFlagsFromString('--expose-gc');

/** Collects all garbage of this process at once, so that the remaining memory can be measured. */
export const collectGarbage = runInNewContext('gc') as () => void;
