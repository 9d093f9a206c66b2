import { boundedLine } from '../../runtime/log.ts';
import { createRegistry } from '../../runtime/metrics.ts';
import { createPredictionCheck } from '../../scheduler-plugin/controllers/prediction-check.ts';
import { createExtenderMetrics } from '../../scheduler-plugin/telemetry/metrics.ts';
import { extenderOf, podOf, statusOf } from '../scheduler-plugin/extender-fixture.ts';
import { recordingLogger } from '../support/logger.ts';

/** The extender's log line about a pod that got CPUs 4-5,12-13 of the node, where 1-2,9-10 were predicted. */
export function contradictedPrediction(node: string): { readonly replay: Record<string, unknown> } {
  const { log, lines } = recordingLogger();
  const under = extenderOf({ nodes: { [node]: statusOf() } });
  const check = createPredictionCheck({
    state: under.state,
    cluster: under,
    events: { record: () => undefined },
    metrics: createExtenderMetrics(createRegistry()),
    log,
  });
  under.state.on('reservationEnded', check);
  const pod = podOf('4');
  under.filter(pod);
  under.see({ ...pod, spec: { ...pod.spec, nodeName: node } });
  const assignments = [{ podUID: 'pod-uid', container: 'compute', cpus: '4-5,12-13' }];
  under.state.reportChanged(node, statusOf({ assignments }));
  return JSON.parse(boundedLine(JSON.stringify(lines[0])));
}
