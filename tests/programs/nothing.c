/* A shared object that does nothing, to stand where another should. */
int stint_test_nothing;
