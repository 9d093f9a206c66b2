import { setTimeout as delay } from 'node:timers/promises';
import type { Scenario } from './scenario.ts';

const BOTH = ['sandbox', 'real'] as const;
/** Until the daemons have opened their watches again: see SILENCE_SECONDS in kube/watch-pace.ts. */
const FROZEN_MILLISECONDS = 140_000;

/** Faults of the API server and of the connection to it. */
export const CONTROL_PLANE: readonly Scenario[] = [
  {
    name: 'api-server-killed',
    title: 'the API server is killed and comes back',
    on: BOTH,
    vms: 120,
    admissionsMayFail: true,
    async run({ world: { real, gate }, random }) {
      const away = 3000 + random.below(4000);
      if (real === undefined) {
        await gate.shut();
        await delay(away);
        await gate.open();
        return;
      }
      await real.plane.apiServer.stop('SIGKILL');
      await delay(away);
      await real.plane.restartApiServer();
    },
  },
  {
    name: 'cut',
    title: 'every connection is interrupted repeatedly',
    on: BOTH,
    vms: 120,
    admissionsMayFail: true,
    async run({ world: { gate }, random }) {
      for (let i = 0; i < 20; i++) {
        gate.cut();
        await delay(50 + random.below(500));
      }
    },
  },
  {
    name: 'frozen',
    title: 'every open connection freezes without an error; new ones work',
    on: BOTH,
    vms: 120,
    admissionsMayFail: true,
    async run({ world: { gate } }) {
      gate.freezeOpen();
      await delay(FROZEN_MILLISECONDS);
    },
  },
];
