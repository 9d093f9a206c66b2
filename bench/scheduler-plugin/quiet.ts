import { setTimeout as delay } from 'node:timers/promises';
import type { Stage } from '../../test/real/scheduler/stage.ts';

/** Until no node is written any more: the labels that follow from the reports are. */
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
    // The lease of the active replica alone is renewed about twice in that time.
    if (Number(now) - Number(before) < 10) return;
    before = now;
  }
}
