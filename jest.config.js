const jupyterlab = require('@jupyterlab/testing/lib/jest-config');

module.exports = {
  ...jupyterlab(__dirname),
  reporters: ['default'],
  roots: ['<rootDir>/labextension']
};
