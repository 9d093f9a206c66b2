import { setTimeout as delay } from 'node:timers/promises';
import type { Stage } from '../../test/real/scheduler/stage.ts';

/** Waits until no node changes any more: the extender has written the labels for the reports. */
export async function untilQuiet(stage: Stage): Promise<void> {
  const version = async () => {
    const { metadata } = (await stage.client.get('/api/v1/nodes', { query: { limit: 1 } })) as {
      metadata: { resourceVersion: string };
    };
    return metadata.resourceVersion;
  };
  for (let before = await version(); ; ) {
    await delay(3000);
    const now = await version();
    // Only the active replica's Lease is renewed, about twice in that time.
    if (Number(now) - Number(before) < 10) return;
    before = now;
  }
}
