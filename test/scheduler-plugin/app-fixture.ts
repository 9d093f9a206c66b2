import { createRegistry } from '../../runtime/metrics.ts';
import { createExplainer } from '../../scheduler-plugin/extender/explain.ts';
import { createExtenderApp } from '../../scheduler-plugin/http/app.ts';
import { createExtenderMetrics } from '../../scheduler-plugin/telemetry/metrics.ts';
import { silent } from '../support/logger.ts';
import { type ExtenderUnderTest, podOf } from './extender-fixture.ts';

type ExtenderApp = ReturnType<typeof createExtenderApp>;

/** The routes of an extender; the API server has one pod. */
export function appOf({ extender, decisions }: Pick<ExtenderUnderTest, 'extender' | 'decisions'>): ExtenderApp {
  const client = { get: async () => podOf('4') };
  const explainer = createExplainer({ extender, decisions, client, isActive: () => true });
  const metrics = createExtenderMetrics(createRegistry());
  return createExtenderApp({ extender, explainer, unpredictable: 'refuse', metrics, log: silent });
}
