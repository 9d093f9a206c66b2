import type { KubeVirtStage } from '../stage.ts';

/** Registers its tests; the stage is there once they run. */
export type Cases = (stage: () => KubeVirtStage) => void;
