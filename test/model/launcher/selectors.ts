import type { NodeRequirement, NodeTerm, SelectingSpec } from '../../../model/launcher/node-selection.ts';

export const need = (key: string, operator: string, ...values: string[]): NodeRequirement => ({
  key,
  operator,
  values,
});

export const term = (...matchExpressions: readonly NodeRequirement[]): NodeTerm => ({ matchExpressions });

export const selecting = (...terms: readonly NodeTerm[]): SelectingSpec => ({
  affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: terms } } },
});
