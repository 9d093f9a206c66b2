/** Maximum seconds of any wait: a loaded machine is not a failure, and a wait ends as soon as its event occurs. */
export const PATIENCE = 180;
