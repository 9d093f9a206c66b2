import type { KubeVirtStage } from '../stage.ts';

/** Registers its tests; the stage exists when they run. */
export type Cases = (stage: () => KubeVirtStage) => void;
